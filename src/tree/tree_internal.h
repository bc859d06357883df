/* SPDX-License-Identifier: BSD-2-Clause */
/* What a finished tree is made of; for build.c and tree.c only. */
#ifndef TREE_TREE_INTERNAL_H
#define TREE_TREE_INTERNAL_H

#include <pthread.h>

#include "tree/graft.h"

#define TREE_NO_TEXT UINT32_MAX

/* A directory or a symlink.  The children of one are neighbours. */
struct dir {
	struct files *files; /* owned, or NULL */
	struct files *extra; /* one more file, found by name; owned, or NULL */
	int64_t mtime;
	uint32_t parent;
	uint32_t first, count; /* children, in order of names */
	uint32_t hidden;       /* and those behind them that are not listed */
	uint32_t name;         /* offsets in text */
	uint32_t stored;       /* the name before it was changed, or none */
	uint32_t target;       /* of a symlink; none: a directory */
};

/* Node `node` of what is behind directory `dir` is a graft. */
struct tree_graft {
	uint64_t node;
	uint32_t dir;
	uint32_t parent_dir; /* and where it is listed */
	uint64_t parent;
	struct graft *graft;
};

/* All grafts of a tree and of its grafts, by number.  Entries never move. */
#define GRAFTS_BLOCK 1024
struct forest {
	pthread_mutex_t lock; /* protects n, growing, and opening */
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
	struct forest *forest; /* the outermost tree's */
	uint32_t number;       /* 0: the outermost; else its graft's + 1 */
};

static inline bool tree_is_link(const struct dir *d)
{
	return d->target != TREE_NO_TEXT;
}
/* Number of node `node` in directory `dir`; 0: numbers are out. */
uint64_t tree_ino(const struct tree *t, uint32_t dir, uint64_t node);
/* The graft that a number is of, and the number inside of its tree.  NULL: it is
 * the outermost tree's. */
struct graft *tree_ino_graft(const struct tree *t, uint64_t ino, uint32_t *dir,
			     uint64_t *node);
/* The graft in the place of a node; NULL. */
struct graft *tree_graft_at(const struct tree *t, uint32_t dir, uint64_t node);
/* Begin with a forest that has the tree's own grafts; -ENOMEM, -EOVERFLOW. */
int tree_forest_new(struct tree *t);
void tree_forest_free(struct tree *t);

#endif
