/* SPDX-License-Identifier: BSD-2-Clause */
/* What a format is: recognise a file, publish its tree. */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include <stdbool.h>

#include "extent/handles.h"
#include "tensor/view.h"
#include "tree/tree.h"

struct source_args {
	const char *path;          /* as the user gave it */
	struct handles *handles;   /* backing files are registered here */
	struct tree_builder *tree; /* where to publish ... */
	uint32_t dir;              /* ... under which directory */
	struct view_options views; /* sample axes, byte order, missing, ... */
	const char *prefix;        /* directories, ':' between; or NULL */
	const char *dataset; /* what to show as the root; NULL: everything */
};
struct source; /* what stays alive as long as the tree */
struct source_ops {
	const char *name, *summary;
	/* How sure are we?  0 (no) to 100, from the first bytes of the file. */
	int (*probe)(const unsigned char *head, size_t n, const char *path);
	/* Publish the tree.  -ENOENT, -EACCES, -EBADMSG, ... with a sentence. */
	int (*open)(const struct source_args *a, struct source **out,
		    struct error *err);
	void (*close)(struct source *s);
};
struct source {
	const struct source_ops *ops;
};

/* Rows end with NULL. */
extern const struct source_ops *const source_table[];
/* Open with whichever format bids best.  The error's sentence names the path;
 * -ENOTSUP: no format recognises it. */
int source_open(const struct source_args *a, struct source **out,
		struct error *err);
void source_close(struct source *s);
/*
 * From now on let libraries that crash on damaged files do it in processes of
 * their own; those end when the sources are closed, or with this process.  Call
 * when all sources are open, before the first thread starts.
 */
int source_isolate(bool keep_stderr, struct error *err);

#endif
