/* SPDX-License-Identifier: BSD-2-Clause */
/* Can we mount here?  Asked before anything that takes time. */
#ifndef APP_MOUNTPOINT_H
#define APP_MOUNTPOINT_H

#include "app/cli.h"

/*
 * A directory that is there, empty unless s->nonempty, on no network file system
 * unless s->force, no live tensorfs mount, above none of the sources; or
 * "/dev/fd/N", an open FUSE descriptor.  A dead tensorfs mount is taken away,
 * with a note.  *out is the canonical path, malloc'ed.  0 or -errno with a
 * sentence.
 */
int mountpoint_check(const struct command *c, const char *path,
		     const struct settings *s, char *const *sources, size_t n,
		     char **out, struct error *err);

/* Wait until no other mount is being made on directory `path`, and keep others waiting
 * until the descriptor is closed.  Look at the directory again after that.  -1: it cannot
 * be locked. */
int mountpoint_lock(const struct command *c, const char *path);

#endif
