# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034,SC2086
# What quickstart and check share: package lists, apt, small helpers.
#
# Sourced, not run.  POSIX sh.  The names are those of Debian 12 packages; on a
# system without dpkg nothing is installed and configure has the last word.

packages_build="build-essential pkg-config autoconf automake fuse3 libfuse3-dev \
libhdf5-dev libdeflate-dev liblzf-dev libzstd-dev liblz4-dev libaec-dev \
libbz2-dev libblosc-dev libjansson-dev zlib1g-dev liblzma-dev liblzo2-dev \
libxxhash-dev libsquashfuse-dev libsquashfs-dev libarchive-dev libsnappy-dev"
packages_sample="python3-h5py python3-numpy"
packages_style="clang-format"
packages_test="clang libclang-rt-dev llvm python3-torch python3-torchvision \
hdf5-tools attr mandoc fio xz-utils util-linux procps \
bitshuffle hdf5-filter-plugin hdf5-filter-plugin-blosc-serial python3-hdf5plugin \
python3-tables python3-netcdf4 python3-hyperspy python3-dask python3-pil \
python3-tifffile python3-zarr python3-xarray python3-fsspec python3-scipy octave \
libarchive-tools libpython3.11-testsuite squashfs-tools squashfs-tools-ng squashfuse \
bzip2 lbzip2 pigz zstd lz4 pixz lzop tar zip unzip sshfs openssh-sftp-server systemd \
rsync strace gdb ccache"
# The Slurm rehearsal, in the full tier only.
packages_full="slurm-wlm munge iproute2"
# To build for the processor that this one is not, and to run that.
packages_other="qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
if [ "$(uname -m)" = aarch64 ]; then
	packages_other="qemu-user-static gcc-x86-64-linux-gnu libc6-dev-amd64-cross"
fi
# What the benchmarks compare with, beside what tests need.
packages_bench="build-essential squashfs-tools squashfuse archivemount hdf5-tools \
python3-dask tar zstd pixz xz-utils fuse3 util-linux"

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# packages_missing NAME...: those that are not installed, on one line.
packages_missing()
{
	for p_ in "$@"; do
		dpkg-query -W -f='${db:Status-Status}\n' "$p_" 2>/dev/null |
			grep -qx installed || printf '%s ' "$p_"
	done
}

# as_root CMD...: as root, or by sudo when that asks for no password.
as_root()
{
	if [ "$(id -u)" = 0 ]; then
		env "$@"
	else
		sudo -n env "$@"
	fi
}

may_install()
{
	[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

# packages_need NAME...: install what is missing, or say exactly what that is
# and exit 1.  With $no_install set nothing is installed.
packages_need()
{
	if ! command -v dpkg-query >/dev/null 2>&1; then
		say "Not a Debian system: these packages, or what they are called here, are needed:"
		say "  $*"
		return 0
	fi
	missing_=$(packages_missing "$@")
	[ -n "$missing_" ] || return 0
	if [ -n "${no_install:-}" ] || ! may_install; then
		printf '%s: missing packages; as root, run:\n' "${0##*/}" >&2
		printf '  apt-get update && apt-get install --no-install-recommends -y %s\n' \
			"${missing_% }" >&2
		exit 1
	fi
	say "Installing: ${missing_% }"
	as_root DEBIAN_FRONTEND=noninteractive \
		apt-get -q -o Acquire::Retries=3 update >/dev/null ||
		say "apt-get update failed; trying with the lists that are here"
	as_root DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
		install --no-install-recommends $missing_ >/dev/null ||
		die "apt-get could not install: ${missing_% }"
	missing_=$(packages_missing "$@")
	[ -z "$missing_" ] || die "still missing after apt-get: $missing_"
}

# The Python that the python3-* packages belong to, whatever PATH says.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# fuse_usable: can this process mount?  Sets $fuse_why when not.
fuse_usable()
{
	fuse_why=
	if [ ! -e /dev/fuse ]; then
		fuse_why="there is no /dev/fuse here (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
	elif ! sh -c ': <>/dev/fuse' 2>/dev/null; then
		fuse_why="/dev/fuse cannot be opened by this user (its mode should be 0666; in a container: --device /dev/fuse)"
	elif ! command -v fusermount3 >/dev/null 2>&1; then
		fuse_why="there is no fusermount3 (Debian package fuse3)"
	fi
	[ -z "$fuse_why" ]
}

# unmount_below DIR: lazily unmount every FUSE mount at or under DIR.
unmount_below()
{
	awk -v d="$1" '$3 ~ /^fuse/ && ($2 == d || index($2, d "/") == 1) {
		print $2 }' /proc/self/mounts 2>/dev/null |
	while read -r m_; do
		fusermount3 -uqz "$m_" 2>/dev/null ||
			umount -l "$m_" 2>/dev/null
	done
	return 0
}

# kill_below DIR: every process whose program is under DIR (a daemon, say, of a test
# that was killed, in a mount namespace where unmount_below does not see it).
kill_below()
{
	for p_ in /proc/[0-9]*; do
		case $(readlink "$p_/exe" 2>/dev/null) in
		"$1"/*) kill -9 "${p_#/proc/}" 2>/dev/null ;;
		esac
	done
	return 0
}
