/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether a path can be mounted on, before anything that takes time. */
#ifndef APP_MOUNTPOINT_H
#define APP_MOUNTPOINT_H

#include "app/cli.h"

/* Check that `path` can be mounted on.  It is a directory that exists, is empty (unless
 * s->nonempty), is not on a network file system (unless s->force), is not a live
 * tensorfs mount and is above none of the sources; or it is "/dev/fd/N", an open FUSE
 * descriptor.  A dead tensorfs mount on it is unmounted, with a note.  *out is the
 * canonical path (malloc'ed).  Return 0, or -errno with a sentence. */
int mountpoint_check(const struct command *c, const char *path,
		     const struct settings *s, char *const *sources, size_t n,
		     char **out, struct error *err);

/* Wait until no other mount is being made on directory `path`, and make others wait
 * until the returned descriptor is closed.  The caller must check the directory again
 * after that.  Return -1 if it cannot be locked. */
int mountpoint_lock(const struct command *c, const char *path);

#endif
