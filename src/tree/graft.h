/* SPDX-License-Identifier: BSD-2-Clause */
/* Grafts: trees that grow where a file of another tree is, once somebody looks. */
#ifndef TREE_GRAFT_H
#define TREE_GRAFT_H

#include "tree/tree.h"

/*
 * An archive inside an archive is shown as a directory in the place of the file
 * that it is.  Its tree is built when somebody looks into it, not before: there may
 * be thousands.  Until then all that is known is its name and what `attr` says.
 *
 * Inode numbers of a graft's nodes say which graft it is; they have room for 8192
 * directories and 2^32 nodes.  Grafts of the first tree are numbered in the order
 * they were added, so their inode numbers are the same at every mount; those inside
 * of grafts in the order they are opened.
 */
#define GRAFTS_MAX (1u << 18)

struct graft;
struct graft_ops {
	/* Build the tree: tree_builder_new ... tree_finish.  Called by one
	 * thread at a time, without a lock; may block.  After a failure it is
	 * called again at the next look. */
	int (*open)(struct graft *g, struct tree **out, struct error *err);
	/* After the tree was freed. */
	void (*free)(struct graft *g);
};
/* First member of whatever the maker needs. */
struct graft {
	const struct graft_ops *ops;
	struct attr attr; /* of the directory; its size and times */
	bool eager;       /* to be opened before the tree is served */
	/* The tree's own: */
	struct tree *_Atomic tree; /* NULL: not opened yet */
	struct error failure;      /* of the last attempt */
	bool opening;
	uint64_t parent; /* inode number of the directory it is in */
	char *name;
	uint32_t number;
};

/*
 * Show `g` (owned by the tree from now on, also after a failure) in the place of
 * node `node` of the files of `dir`; its entry is `name` in node `in` of the same
 * files.  0 or -errno; tree_finish fails then, too.
 */
int tree_add_graft(struct tree_builder *b, uint32_t dir, uint64_t in,
		   uint64_t node, const char *name, struct graft *g);

/* Why the graft with this inode number could not be opened; 0: no such failure. */
int tree_graft_failure(const struct tree *t, uint64_t ino, struct error *err);
/* All grafts, opened or not, in order of numbers; NULL at the end. */
struct graft *tree_graft(const struct tree *t, uint32_t i);
/* Open it now; the error is the opener's. */
int tree_graft_open(const struct tree *t, struct graft *g, struct error *err);

#endif
