/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the files that option concat= puts side by side. */
#ifndef FORMATS_CONCAT_NAMES_H
#define FORMATS_CONCAT_NAMES_H

#include "formats/source.h"

/*
 * What is in a directory, but for what is hidden, in order of names, numbers in these
 * counting as numbers.  How many; an empty one is an error.  To be freed in any case.
 */
struct dirent;
int concat_list(const char *path, struct dirent ***names, struct error *err);
/*
 * -EINVAL: two names have the same numbers (1 and 01), or a number is left out in a
 * sequence from 0 or 1 on.  The sentence has the path.
 */
int concat_check(const char *path, struct dirent *const *names, int n,
		 struct error *err);
void concat_list_free(struct dirent **names, int n);

#endif
