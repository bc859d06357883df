#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every fuzz target replays its corpus.  ($builddir and $srcdir from make.)
set -u
: "${srcdir:=.}" "${builddir:=.}"
failed=0
for source in "$srcdir"/tests/fuzz/fuzz-*.c; do
	name=$(basename "$source" .c)
	corpus=$srcdir/tests/fuzz/corpus/${name#fuzz-}
	set -- "$corpus"/*
	if [ ! -e "$1" ]; then
		echo "FAIL $name: no corpus in $corpus"
		failed=1
	elif "$builddir/tests/fuzz/$name" "$@"; then
		echo "ok   $name: $# inputs"
	else
		echo "FAIL $name"
		failed=1
	fi
done
exit $failed
