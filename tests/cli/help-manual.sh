#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every option of --help is in the manual, and the manual has no other.
#
# An option is compared as it is spelled: "-d,--debug[=MODULE,...]".
set -eu
LC_ALL=C
export LC_ALL
tensorfs=${TENSORFS:-./tensorfs}
srcdir=${srcdir:-.}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# Lines like "  -f, --foreground     stay ..."; an argument follows directly.
help_options() {
	"$tensorfs" "$@" --help |
		sed -n 's/^  \( *-[^ ]*\( --[^ ]*\)\{0,1\}\).*/\1/p' | tr -d ' '
}

# Lines like ".It Fl d , Fl -debug Ns Op = Ns Ar MODULE,...".
manual_options() {
	sed -n 's/^\.It Fl /Fl /p' "$1" |
		sed 's/Op \(.*\)$/[\1]/; s/Fl /-/g; s/ Ns//g; s/Ar //g' |
		tr -d ' '
}

compare() {
	page=$1
	shift
	for command; do
		if [ "$command" = tensorfs ]; then
			help_options
		else
			help_options "$command"
		fi
	done | sort -u >"$tmp/help"
	manual_options "$srcdir/docs/$page.1" | sort -u >"$tmp/manual"
	if [ ! -s "$tmp/help" ]; then
		echo "$page: --help lists no options" >&2
		failed=1
	elif ! diff -u "$tmp/help" "$tmp/manual" >&2; then
		echo "$page.1 (+) and --help of $* (-) differ" >&2
		failed=1
	fi
}

compare tensorfs tensorfs
compare tensorfs-mount mount umount
compare tensorfs-pack pack
compare tensorfs-run run
compare tensorfs-ls ls cat
compare tensorfs-info info verify
compare tensorfs-merge merge
compare tensorfs-stage stage staged unstage
compare tensorfs-create create write
compare tensorfs-stats stats

# Every command is in the overview, and has a page that knows its name.
"$tensorfs" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
	sort >"$tmp/help"
sed -n '/^The commands are/,/^\.El/s/^\.It Cm //p' "$srcdir/docs/tensorfs.1" |
	sort >"$tmp/manual"
if ! diff -u "$tmp/help" "$tmp/manual" >&2; then
	echo "tensorfs.1 (+) and --help (-) have other commands" >&2
	failed=1
fi
while read -r command; do
	[ "$command" = help ] && continue
	if ! grep -q "^\.Nm tensorfs $command" "$srcdir"/docs/tensorfs-*.1; then
		echo "no page has 'tensorfs $command'" >&2
		failed=1
	fi
done <"$tmp/help"
exit $failed
