/* SPDX-License-Identifier: BSD-2-Clause */
/* What mount and run do alike: name the sources, open them, mount them. */
#ifndef APP_SERVING_H
#define APP_SERVING_H

#include "app/cli.h"
#include "fuse/fuse.h"

/* `path`, absolute, kept by the settings: relative ones do not survive a change of
 * directory.  NULL: errno. */
char *path_absolute(struct settings *s, const char *path);
/*
 * Operands of a mount: each is SOURCE or, where there is no such file, NAME=SOURCE.
 * paths[i] and the places that settings name become absolute, s->names[i] the name
 * or NULL.  0, or an exit code with
 * the sentence said.
 */
int sources_prepare(const struct command *c, struct settings *s, char **paths,
		    size_t n);
/* Threads that serve, by the settings. */
void serving_threads(struct settings *s);
/* Open the sources, ask the kernel for the mount on `point`; no thread runs yet.
 * 0, or an exit code with a sentence; both are set, or neither. */
int mount_open(const struct settings *s, char *const *paths, size_t n,
	       const char *point, struct session **session,
	       struct fuse_face **face, struct error *err);

/* session_free, after which the process ends with `code`; if decoding that is under
 * way, for nobody any more, takes longer than some seconds, it ends at once. */
void session_end(struct session *s, int code);

#endif
