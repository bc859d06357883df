#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every source file says its licence at the top, and what it is for next.
srcdir=${srcdir:-$(dirname "$0")/..}
cd "$srcdir" || exit 99
tag='SPDX-License-Identifier: BSD-2-Clause'
status=0

# Beside files that are told by their suffix: programs without one.
programs="configure.ac Makefile.am contrib/check contrib/quickstart
	contrib/make-tensor contrib/strangers contrib/bench/run contrib/bench/stem tests/run tests/tiers"
for file in $programs; do
	[ -f "$file" ] || { echo "$file: not there" >&2; status=1; }
done

# gawk would have nextfile; every awk has FNR.
{
	find src tests contrib \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \
		-o -name '*.am' \) -type f
	printf '%s\n' $programs
} | LC_ALL=C sort | xargs awk -v tag="$tag" '
function complain(text)
{
	print text >"/dev/stderr"
	status = 1
}
function finish()
{
	if (file && !licensed)
		complain(file ": no \"" tag "\" in the first two lines")
}
FNR == 1 {
	finish()
	file = FILENAME
	licensed = 0
	files++
}
FNR <= 2 && index($0, tag) { licensed = 1 }
FILENAME ~ /^src\/.*\.[ch]$/ && FNR == 1 && $0 != "/* " tag " */" {
	complain(FILENAME ": the first line is not /* " tag " */")
}
# The purpose is one comment of one line or two.
FILENAME ~ /^src\/.*\.[ch]$/ && FNR == 2 {
	purpose = $0
}
FILENAME ~ /^src\/.*\.[ch]$/ && FNR == 3 &&
	purpose !~ /^\/\* ..* \*\/$/ && (purpose !~ /^\/\* ../ || $0 !~ /^ \* ..*\*\/$/) {
	complain(FILENAME ": the second line is not a comment with its purpose")
}
END {
	finish()
	if (files < 100)
		complain("few files were found: is this the source tree?")
	exit status
}' || status=1
exit $status
