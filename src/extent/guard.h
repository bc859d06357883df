/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which files may be shown to users other than the one who mounted. */
#ifndef EXTENT_GUARD_H
#define EXTENT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/vec.h"

/* Zeros allow every file. */
struct guard {
	/* Real paths of directories; empty: files may be anywhere. */
	vec(char *) trees;
	bool watches;       /* remember a file that is not public ... */
	char *private_file; /* ... the first one, as it was named */
	/* Files that are not public are errors from now on. */
	bool refuses_private;
};
void guard_free(struct guard *g);
/* From now on allow only files below `dir`, or below another directory that was added.
 * A directory that does not exist adds nothing.  Returns false if memory ran out. */
bool guard_add_tree(struct guard *g, const char *dir);
/* Return true if the file is public: its group and all others may read it and may pass
 * through each directory on the way to it, and no POSIX access control list of these
 * takes that permission from a user or group.  `real` is a path without symlinks.
 * Blocks on I/O. */
bool guard_is_public(const char *real, const struct stat *st);
/* Call this for each file that was opened, before a byte of it is used.  Returns 0,
 * -EIO if the file may not be shown, or -ENOMEM, with a sentence; `path` is the name
 * that was opened.  Blocks on I/O. */
int guard_check(struct guard *g, int fd, const struct stat *st,
		const char *path, struct error *err);

#endif
