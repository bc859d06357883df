/* SPDX-License-Identifier: BSD-2-Clause */
/* What `mount` and `run` have in common: they name the sources, open them and mount
 * them. */
#ifndef APP_SERVING_H
#define APP_SERVING_H

#include "app/cli.h"
#include "fuse/fuse.h"

/* Return `path` made absolute; the settings own the result.  Relative paths would change
 * their meaning with the working directory.  Return NULL with errno set on failure. */
char *path_absolute(struct settings *s, const char *path);
/* Prepare the operands of a mount: each is SOURCE or, if there is no such file,
 * NAME=SOURCE. paths[i] and the paths in the settings become absolute, s->names[i]
 * becomes the name or NULL.  Return 0, or an exit code after a sentence on stderr. */
int sources_prepare(const struct command *c, struct settings *s, char **paths,
		    size_t n);
/* Set the number of threads that answer requests. */
void serving_threads(struct settings *s);
/* Open the sources and ask the kernel for the mount on `point`; starts no thread that
 * answers requests.  Return 0, or an exit code with a sentence in *err.  Both results
 * are set, or neither. */
int mount_open(const struct settings *s, char *const *paths, size_t n,
	       const char *point, struct session **session,
	       struct fuse_face **face, struct error *err);

/* Call session_free before the process ends with `code`.  If decoding under way, which
 * no reader waits for any more, takes longer than some seconds, the process exits at
 * once. */
void session_end(struct session *s, int code);

#endif
