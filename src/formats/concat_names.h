/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the files that option concat= puts side by side. */
#ifndef FORMATS_CONCAT_NAMES_H
#define FORMATS_CONCAT_NAMES_H

#include "formats/source.h"

/*
 * List the entries of a directory that are not hidden, ordered by name, with numbers in
 * names by value.  Return how many there are, or -errno; an empty directory is an error.
 * Call concat_list_free in any case.
 */
struct dirent;
int concat_list(const char *path, struct dirent ***names, struct error *err);
/*
 * Check the names for gaps.  Return 0, or -EINVAL with a sentence that has the path if
 * two names have equal numbers (1 and 01), or a sequence from 0 or 1 on lacks a number.
 */
int concat_check(const char *path, struct dirent *const *names, int n,
		 struct error *err);
void concat_list_free(struct dirent **names, int n);

#endif
