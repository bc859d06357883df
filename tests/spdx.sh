#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source file says its licence at the top, and what it is for next.
srcdir=${srcdir:-$(dirname "$0")/..}
cd "$srcdir" || exit 99
tag='SPDX-License-Identifier: BSD-2-Clause'
status=0
complain()
{
	echo "$*" >&2
	status=1
}

for file in $(find src tests contrib \( -name '*.[ch]' -o -name '*.sh' \
	-o -name '*.py' -o -name '*.am' \) -type f | LC_ALL=C sort) \
	configure.ac Makefile.am contrib/check contrib/quickstart \
	contrib/make-tensor contrib/bench/run contrib/bench/stem; do
	[ -f "$file" ] || { complain "$file: not there"; continue; }
	head -n 2 "$file" | grep -q "$tag" ||
		complain "$file: no \"$tag\" in the first two lines"
done
for file in $(find src -name '*.[ch]' | LC_ALL=C sort); do
	[ "$(head -n 1 "$file")" = "/* $tag */" ] ||
		complain "$file: the first line is not /* $tag */"
	sed -n 2p "$file" | grep -q '^/\* ..* \*/$' ||
		complain "$file: the second line is not a comment with its purpose"
done
exit $status
