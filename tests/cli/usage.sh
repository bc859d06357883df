#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Wrong usage: the exit code is right, and one sentence says what is wrong.
set -eu
LC_ALL=C
export LC_ALL
tensorfs=${TENSORFS:-./tensorfs}
case $tensorfs in
/*) ;;
*) tensorfs=$PWD/$tensorfs ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
mkdir empty full
echo text >plain.txt
echo x >full/x
: >nothing.h5
failed=0

fail() {
	echo "$*" >&2
	failed=1
}

# expect CODE SENTENCE ARGUMENT...: stderr has the sentence, stdout is empty.
expect() {
	code=$1 sentence=$2
	shift 2
	got=0
	"$tensorfs" "$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$code" ] || fail "tensorfs $*: exit $got, not $code: $(cat err)"
	grep -qF -- "$sentence" err ||
		fail "tensorfs $*: no '$sentence' in: $(cat err)"
	[ ! -s out ] || fail "tensorfs $*: standard output: $(head -1 out)"
	lines=$(wc -l <err)
	[ "$lines" -le 2 ] || [ $# = 0 ] ||
		fail "tensorfs $*: $lines lines: $(cat err)"
}

# prints SENTENCE ARGUMENT...: exit 0, stdout has the sentence.
prints() {
	sentence=$1
	shift
	"$tensorfs" "$@" >out 2>err </dev/null || fail "tensorfs $*: exit $?"
	grep -qF -- "$sentence" out ||
		fail "tensorfs $*: no '$sentence' in: $(cat out)"
	[ ! -s err ] || fail "tensorfs $*: standard error: $(cat err)"
}

# The command line
expect 2 'Usage: tensorfs COMMAND'
expect 2 "'frobnicate' is neither a command nor an existing file" frobnicate
expect 2 "Try 'tensorfs --help'" frobnicate a b
for c in mount run umount ls cat info verify stats stage unstage create write merge; do
	expect 2 "operand 1 is empty (an unset variable?)" $c ""
done
expect 2 "operand 2 is empty" mount plain.txt ""
expect 2 "operand 1 is empty" mount "" empty
expect 2 "operand 2 is empty" pack full ""
expect 2 "operand 1 is empty" run "" -- ls '{}'
expect 2 "'nope' is not a list of modules" mount -dnope plain.txt empty
expect 2 "'nope' is not a list of modules" mount -d=nope plain.txt empty
expect 2 "unknown option '--frobnicate'" ls --frobnicate plain.txt
expect 2 "did you mean '--cache-size'" mount --cache-sise=1G plain.txt empty
expect 2 "unknown option '-x'" umount -x empty
expect 2 "Try 'tensorfs ls --help'" ls
expect 2 "all operands are missing: SOURCE|NAME=SOURCE... MOUNTPOINT" mount
expect 2 "an operand is missing: SOURCE|NAME=SOURCE... MOUNTPOINT" mount plain.txt
expect 2 "an operand is missing" plain.txt
expect 2 "MOUNTPOINT is missing" stats
expect 2 "SOURCE[:PATH] is missing" verify
expect 2 "SOURCE[:PATH] or --files-from is missing" stage
expect 2 "unexpected argument 'b'; expected MOUNTPOINT" stats a b
expect 2 "unexpected argument 'b'; expected SOURCE[:PATH]" verify a b
expect 2 "there is no command 'frobnicate'" help frobnicate
expect 2 "MOUNTPOINT or --all is missing" umount
expect 2 "--all takes no mount point" umount --all empty

# Values
expect 2 "option '--json' takes no value" ls --json=1 plain.txt
expect 2 "option '--cache-size' needs a value: SIZE" mount --cache-size
expect 2 "option '--cache-size': " mount --cache-size=lots plain.txt empty
expect 2 "option '--threads': " mount --threads 0 plain.txt empty
expect 2 "option '--fmask': " mount --fmask=9 plain.txt empty
expect 2 "'big' is not little or source" cat --dtype-order=big plain.txt:/x
expect 2 "'maybe' is not error or fill" ls --missing maybe plain.txt
expect 2 "option '--views': " ls --views=pictures plain.txt
expect 2 "option '--sample-axes': " ls --sample-axes=33 plain.txt
expect 2 "is not auto, plain or none" verify --progress=much plain.txt
expect 2 "is not a number of seconds" stats --watch=soon empty
expect 2 "--count needs --watch" stats --count=3 empty
expect 2 "--json or --prometheus, not both" stats --json --prometheus empty
expect 2 "'read_requests' is not NAME=N" stats --wait=read_requests empty
expect 2 "'=3' is not NAME=N" stats --wait =3 empty
expect 2 "option '--wait' needs a value: NAME=N" stats --wait
for n in '' -1 1x 0x10 1.5 1K; do
	expect 2 "option '--wait': '$n' is not a whole number" \
		stats --wait read_requests="$n" empty
done
expect 2 "is not between 0 and 9223372036854775807" \
	stats --wait read_requests=9223372036854775808 empty
for n in soon '' 0 -1 nan inf 86401; do
	expect 2 "'$n' is not a number of seconds" \
		stats --wait read_requests=1 --timeout="$n" empty
done
expect 2 "--timeout needs --wait" stats --timeout=1 empty
expect 2 "is not a list of modules" mount --debug=everything plain.txt empty
expect 2 "--map takes SOURCE:PATH OFFSET LENGTH" info --map plain.txt
expect 2 "unexpected argument 'b'; expected one SOURCE[:PATH]" info a b c

# Mount options
expect 2 "unknown option '-o frobnicate'" mount -o ro,frobnicate plain.txt empty
expect 2 "option '-o' needs a value" mount plain.txt empty -o
expect 2 "option 'allow_other' takes no value" plain.txt empty -o allow_other=1
expect 2 "option 'cache-size' needs a value" plain.txt empty -ocache-size
expect 2 "option 'workers': " plain.txt empty -o workers=many
expect 2 "notify_pipe: 'plain.txt' is not a FIFO" \
	plain.txt empty -o notify_pipe=plain.txt
[ "$(cat plain.txt)" = text ] || fail "a file that is not a FIFO was written to"
expect 2 "unknown option '--nosuid'" mount --nosuid plain.txt empty
# These are all accepted, in every spelling, and the source is then found wrong.
expect 3 'plain.txt' plain.txt empty -o \
	rw,nosuid,nodev,noexec,noatime,relatime,noauto,user,nofail,_netdev,x-a.b=1
expect 3 'plain.txt' plain.txt empty -o defaults,exec,suid,dev,auto,comment=x
expect 3 'plain.txt' mount --cache_size=10M --sample_axes=1 --allow-other \
	plain.txt empty
expect 3 'plain.txt' mount -s -o cachesize=10%,workers=2,views=array:samples \
	plain.txt empty
expect 3 'plain.txt' mount -osample-axes=1,uid=5,fmask=077 -- plain.txt empty

# Sources
expect 3 'no.h5' ls no.h5
expect 3 'no.h5' ls no.h5:/data
expect 3 'No such file' mount no.h5 empty
expect 3 'no.h5' ./no.h5 empty
expect 3 'neither an HDF5 file nor an archive' cat plain.txt:/data/array.npy
expect 3 'plain.txt' info plain.txt
expect 3 'nothing.h5' verify nothing.h5
: >nothing
expect 3 'is empty' ls nothing
expect 2 "would both be the directory 'plain.txt'" \
	mount plain.txt ./plain.txt empty

# Mount points are looked at before sources
expect 4 "does not exist; make it first: mkdir -p 'no'" mount no.h5 no
expect 4 'is not a directory' mount no.h5 plain.txt
expect 4 "is not empty ('x' is there)" mount no.h5 full
expect 3 'no.h5' mount -o nonempty no.h5 full
expect 4 'would hide it' mount -o nonempty full/x full
expect 4 'is not open' mount plain.txt /dev/fd/99
expect 4 'is not /dev/fd/N' mount plain.txt /dev/fd/9x
expect 1 'is not a mount point' umount empty
expect 1 'No such file' umount no
expect 1 'is not the root of a tensorfs mount' stats empty
expect 1 'is not the root of a tensorfs mount' stats --wait read_requests=0 empty

# Help
prints 'Usage: tensorfs COMMAND' --help
prints 'Usage: tensorfs COMMAND' help
prints 'Usage: tensorfs mount' mount --help
prints 'Usage: tensorfs verify' help verify
prints '--cache-size=SIZE' mount no.h5 no -h
prints 'filters: ' --version
prints 'tensorfs ' mount -V
prints 'libfuse' ls --version
exit $failed
