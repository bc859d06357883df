#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every header compiles alone, twice included, with a guard named for its path.
srcdir=${srcdir:-$(dirname "$0")/..}
CC=${CC:-cc}
libs="fuse3 libdeflate libzstd liblz4 jansson squashfuse"
if pkg-config --exists hdf5-serial; then
	libs="$libs hdf5-serial"
else
	libs="$libs hdf5"
fi
cflags=$(pkg-config --cflags $libs) || exit 77
cflags=$(echo "$cflags" | sed 's/-I/-isystem /g')
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$srcdir/src" || exit 99
status=0
n=0

for header in $(find . -name '*.h' | sed 's,^\./,,' | LC_ALL=C sort); do
	n=$((n + 1))
	printf '#include "%s"\n#include "%s"\nextern int nothing;\n' \
		"$header" "$header" >"$tmp/alone.c"
	$CC -std=c11 -D_GNU_SOURCE -DFUSE_USE_VERSION=314 \
		-DH5_USE_110_API -Wall -Wextra \
		-Wpedantic -Werror -pthread -fsyntax-only -I. $cflags \
		"$tmp/alone.c" || {
		echo "src/$header does not compile alone" >&2
		status=1
	}
	guard=$(echo "$header" | tr 'a-z/.-' 'A-Z___')
	grep -q "^#ifndef $guard\$" "$header" || {
		echo "src/$header: no include guard $guard" >&2
		status=1
	}
done
[ $n -gt 0 ] || exit 99
exit $status
