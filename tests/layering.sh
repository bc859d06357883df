#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A folder of src/ includes only what src/LAYERS allows; files stay small.
#
# Also: libfuse is known to src/fs/fuse* alone (not to its public fuse.h), libhdf5
# to hdf5* in src/source and src/pack, libsquashfuse to src/source/squashfs_walk*,
# libsquashfs to src/pack/image*; includes are written from src/; LAYERS itself has no
# cycle; no file has grown over 500 lines.
srcdir=${srcdir:-$(dirname "$0")/..}
cd "$srcdir/src" || exit 99
status=0
complain()
{
	echo "$*" >&2
	status=1
}

# A folder may only list folders that stand above it: so there is no cycle.
seen=" "
while IFS=: read -r folder allowed; do
	[ -n "$folder" ] || continue
	for a in $allowed; do
		case $seen in
		*" $a "*) ;;
		*) complain "LAYERS: $folder lists $a, which does not stand above it" ;;
		esac
	done
	[ -d "$folder" ] || complain "LAYERS: there is no folder $folder"
	seen="$seen$folder "
done <LAYERS

for file in $(find . -name '*.[ch]' | sed 's,^\./,,' | LC_ALL=C sort); do
	folder=${file%%/*}
	case $seen in
	*" $folder "*) ;;
	*) complain "src/$file: its folder is not in src/LAYERS" ; continue ;;
	esac
	allowed=" $folder $(sed -n "s/^$folder://p" LAYERS) "

	for inc in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\(.*\)".*/\1/p' "$file"); do
		case $inc in
		config.h) continue ;;
		*..*) complain "src/$file: \"$inc\": includes are written from src/" ;;
		*/*) ;;
		*) complain "src/$file: \"$inc\": includes are written from src/" ; continue ;;
		esac
		case $allowed in
		*" ${inc%%/*} "*) ;;
		*) complain "src/$file: includes \"$inc\"; src/LAYERS allows:$allowed" ;;
		esac
		[ -f "$inc" ] || complain "src/$file: \"$inc\": no such file in src/"
	done

	for inc in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\(.*\)>.*/\1/p' "$file"); do
		case $inc in
		fuse*)
			case $file in
			fs/fuse*.c | fs/fuse_*.h) ;;
			*) complain "src/$file: <$inc>: only src/fs/fuse* knows libfuse" ;;
			esac ;;
		hdf5.h | hdf5_* | H5*)
			case $file in
			source/hdf5* | pack/hdf5*) ;;
			*) complain "src/$file: <$inc>: only hdf5* in src/source and src/pack knows libhdf5" ;;
			esac ;;
		squashfuse*)
			case $file in
			source/squashfs_walk.h) ;;
			*) complain "src/$file: <$inc>: include source/squashfs_walk.h" ;;
			esac ;;
		sqfs/*)
			case $file in
			pack/image*) ;;
			*) complain "src/$file: <$inc>: only src/pack/image* knows libsquashfs" ;;
			esac ;;
		esac
	done
done

# A test is a list of cases and may be longer.
for file in $(cd .. && find src tests contrib \( -name '*.[ch]' -o -name '*.sh' \
	-o -name '*.py' \) -type f); do
	case $file in
	tests/*) most=800 ;;
	*) most=500 ;;
	esac
	lines=$(wc -l <"../$file")
	[ "$lines" -le $most ] ||
		complain "$file: $lines lines; which second idea moved in? (at most $most)"
done
exit $status
