/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files may be shown where other users than the one who mounted may look. */
#ifndef EXTENT_GUARD_H
#define EXTENT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/vec.h"

/* Zeros allow every file. */
struct guard {
	vec(char *) trees; /* real directories; empty: files may be anywhere */
	bool watches;      /* remember a file that not everybody may read ... */
	char *private_file;   /* ... the first one, as it was named */
	bool refuses_private; /* such files are errors from now on */
};
void guard_free(struct guard *g);
/* From now on only files below `dir`, or below another one that was added, may be
 * opened.  A directory that does not exist adds nothing.  False: no memory. */
bool guard_add_tree(struct guard *g, const char *dir);
/* True when the owner's group and all others may read the file and may pass through
 * each directory on the way to it, and no POSIX access control list of these says
 * otherwise of anybody.  `real` has no symlinks. */
bool guard_is_public(const char *real, const struct stat *st);
/* Call for each file that was opened, before a byte of it is used.  -EIO with a
 * sentence when it may not be shown; `path` is how it was named. */
int guard_check(struct guard *g, int fd, const struct stat *st,
		const char *path, struct error *err);

#endif
