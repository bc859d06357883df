/* SPDX-License-Identifier: BSD-2-Clause */
/* What a finished tree is made of; for build.c and tree.c only. */
#ifndef TREE_TREE_INTERNAL_H
#define TREE_TREE_INTERNAL_H

#include "tree/tree.h"

#define TREE_NO_TEXT UINT32_MAX

/* A directory or a symlink.  The children of one are neighbours. */
struct dir {
	struct files *files; /* owned, or NULL */
	int64_t mtime;
	uint32_t parent;
	uint32_t first, count; /* children, in order of names */
	uint32_t subdirs;      /* of these, no symlinks; `files` not counted */
	uint32_t name;         /* offsets in text */
	uint32_t stored;       /* the name before it was changed, or none */
	uint32_t target;       /* of a symlink; none: a directory */
};

struct tree {
	struct dir *dir; /* 0 is the root */
	uint32_t n;
	char *text; /* NUL-terminated names and targets */
	size_t text_size;
};

#endif
