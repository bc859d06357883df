/* SPDX-License-Identifier: BSD-2-Clause */
/* The structures of a finished tree; for this folder only. */
#ifndef TREE_TREE_INTERNAL_H
#define TREE_TREE_INTERNAL_H

#include <pthread.h>

#include "tree/graft.h"

#define TREE_NO_TEXT UINT32_MAX

/* A directory or a symlink.  The children of a directory are neighbours. */
struct dir {
	struct files *files; /* owned, or NULL */
	/* One more file, found by name; owned, or NULL. */
	struct files *extra;
	int64_t mtime;
	uint32_t parent;
	uint32_t first, count; /* listed children, in order of names */
	/* Number of children behind these that are not listed. */
	uint32_t hidden;
	uint32_t name; /* offset in `text`, as the two below */
	/* The name before it was changed, or TREE_NO_TEXT. */
	uint32_t stored;
	uint32_t target; /* of a symlink; TREE_NO_TEXT in a directory */
};

/* A graft stands in the place of node `node` of the files of directory `dir`. */
struct tree_graft {
	uint64_t node;
	uint32_t dir;
	/* The graft is listed in node `parent` of this directory's files. */
	uint32_t parent_dir;
	uint64_t parent;
	struct graft *graft;
};

/* All grafts of a tree and of its grafts, by number.  Entries are never moved. */
#define GRAFTS_BLOCK 1024
struct forest {
	/* Protects n, growing, graft.opening and graft.failure. */
	pthread_mutex_t lock;
	pthread_cond_t opened;
	uint32_t n;
	struct graft **_Atomic block[GRAFTS_MAX / GRAFTS_BLOCK];
};

struct tree {
	struct dir *dir; /* 0 is the root */
	uint32_t n;
	char *text; /* NUL-terminated names and targets */
	size_t text_size;
	struct tree_graft *graft; /* in order of dir and node */
	uint32_t n_grafts;
	/* The forest of the outermost tree, which owns it. */
	struct forest *forest;
	/* 0 in the outermost tree, else the number of its graft + 1. */
	uint32_t number;
};

static inline bool tree_is_link(const struct dir *d)
{
	return d->target != TREE_NO_TEXT;
}
/* Return the inode number of node `node` in directory `dir`; 0 if it does not fit. */
uint64_t tree_ino(const struct tree *t, uint32_t dir, uint64_t node);
/* Return the graft that an inode number belongs to, and set *dir and *node to the
 * numbers inside its tree.  NULL if the number belongs to the outermost tree (or, with
 * bit 63 set, to no graft). */
struct graft *tree_ino_graft(const struct tree *t, uint64_t ino, uint32_t *dir,
			     uint64_t *node);
/* Return the graft in the place of a node, or NULL. */
struct graft *tree_graft_at(const struct tree *t, uint32_t dir, uint64_t node);
/* Make the forest of a new tree with its own grafts.  Returns 0, -ENOMEM or -EOVERFLOW. */
int tree_forest_new(struct tree *t);
void tree_forest_free(struct tree *t);

#endif
