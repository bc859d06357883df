#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A folder below src/ includes only what src/LAYERS allows.
#
# Also: libfuse is known to src/fuse alone (not to its public fuse.h), libhdf5 to
# src/formats/hdf5, src/tensors and src/pack/hdf5, libsquashfuse to
# src/formats/squashfs/walk*, libsquashfs to src/pack/squashfs; includes are written from
# src/; LAYERS itself has no cycle, and docs/layers.svg is its picture.  Each folder has a
# README of at most 15 lines.  Files of more than 800 lines are listed: perhaps a second
# idea has moved in.
srcdir=${srcdir:-$(dirname "$0")/..}
cd "$srcdir" || exit 99
folders=$(find src -name '*.[ch]' -type f | sed 's:/[^/]*$::' | sort -u | tr '\n' ' ')

{
	# The first input: the table; then each include, as FILE:LINE:TEXT.
	cat src/LAYERS
	echo =
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' src \
		--include='*.[ch]' | LC_ALL=C sort -t: -k1,1 -k2,2n
} | awk -v folders="$folders" '
function complain(text)
{
	print text >"/dev/stderr"
	status = 1
}
# The only files that may know a library, by the beginning of the name of its headers.
function known(file, header)
{
	if (header ~ /^fuse/ && file !~ /^fuse\/[^\/]*\.c$/ && file !~ /^fuse\/private\.h$/)
		return "only src/fuse knows libfuse"
	if (header ~ /^(hdf5\.h|hdf5_|H5)/ && file !~ /^(formats\/hdf5|tensors|pack\/hdf5)\//)
		return "only src/formats/hdf5, src/tensors and src/pack/hdf5 know libhdf5"
	if (header ~ /^squashfuse/ && file != "formats/squashfs/walk.h")
		return "include formats/squashfs/walk.h"
	if (header ~ /^sqfs\// && file !~ /^pack\/squashfs\//)
		return "only src/pack/squashfs knows libsquashfs"
	return ""
}
BEGIN {
	n = split(folders, list, " ")
	for (i = 1; i <= n; i++)
		there[substr(list[i], 5)] = 1
}
!table_done && $0 == "=" {
	table_done = 1
	for (f in there)
		if (!(f in layer))
			complain("src/" f ": it is not in src/LAYERS")
	next
}
# A folder may only list folders that stand above it: so there is no cycle.
!table_done && NF {
	split($0, parts, ":")
	folder = parts[1]
	layer[folder] = 1
	allowed[folder, folder] = 1
	words[folder] = parts[2]
	n = split(parts[2], list, " ")
	for (i = 1; i <= n; i++) {
		if (!(list[i] in layer) || list[i] == folder)
			complain("LAYERS: " folder " lists " list[i] \
				", which does not stand above it")
		allowed[folder, list[i]] = 1
	}
	if (!(folder in there))
		complain("LAYERS: there is no folder " folder)
	next
}
table_done {
	includes++
	file = $0
	sub(/:.*/, "", file)
	short = substr(file, 5)
	folder = short
	sub(/\/[^\/]*$/, "", folder)
	header = $0
	sub(/^[^"<]*["<]/, "", header)
	quoted = $0 ~ /^[^"<]*"/
	sub(/[">].*/, "", header)
	if (!quoted) {
		why = known(short, header)
		if (why)
			complain(file ": <" header ">: " why)
		next
	}
	if (header == "config.h")
		next
	if (header ~ /\.\./ || header !~ /\//) {
		complain(file ": \"" header "\": includes are written from src/")
		next
	}
	other = header
	sub(/\/[^\/]*$/, "", other)
	if (!((folder, other) in allowed))
		complain(file ": includes \"" header "\"; src/LAYERS allows:" words[folder])
	if (!(header in exists))
		exists[header] = (getline line <("src/" header)) >= 0
	close("src/" header)
	if (!exists[header])
		complain(file ": \"" header "\": no such file in src/")
}
END {
	if (!includes)
		complain("no include was found: is this the source tree?")
	exit status
}' || status=1

for folder in $folders; do
	lines=$(wc -l <"$folder/README") || lines=99
	[ "$lines" -le 15 ] || {
		echo "$folder/README: a page of at most 15 lines is wanted" >&2
		status=1
	}
done
contrib/draw-layers <src/LAYERS | cmp - docs/layers.svg || {
	echo "run contrib/draw-layers <src/LAYERS >docs/layers.svg" >&2
	status=1
}

find src tests contrib \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \) -type f \
	-exec wc -l {} + | awk '
$2 != "total" && $1 > 800 {
	print "note: " $2 ": " $1 " lines; has a second idea moved in?"
}'
exit ${status:-0}
