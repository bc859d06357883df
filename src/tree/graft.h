/* SPDX-License-Identifier: BSD-2-Clause */
/* Grafts: trees that stand in the place of a file of another tree, built at the first
 * lookup. */
#ifndef TREE_GRAFT_H
#define TREE_GRAFT_H

#include "tree/tree.h"

/*
 * An archive inside an archive is shown as a directory in the place of its file.  Its
 * tree is built when it is first looked into, because there may be thousands.  Until
 * then only its name and `attr` are known.
 *
 * The inode numbers of a graft's nodes include the number of the graft; they have room
 * for 8192 directories and 2^32 nodes.  Grafts of the first tree are numbered in the
 * order in which they were added, so their inode numbers are the same at every mount;
 * grafts inside grafts are numbered in the order in which they are opened.
 */
#define GRAFTS_MAX (1u << 18)

struct graft;
struct graft_ops {
	/* Build the tree with tree_builder_new ... tree_finish; *out is owned by the
	 * caller.  Returns 0 or -errno.  Called by one thread at a time, without a
	 * lock; may block.  After a failure it is called again at the next lookup. */
	int (*open)(struct graft *g, struct tree **out, struct error *err);
	/* Free the graft; called after its tree was freed. */
	void (*free)(struct graft *g);
};
/* The first member of a struct of the source that adds the graft. */
struct graft {
	const struct graft_ops *ops;
	struct attr attr; /* of the directory; its size and times */
	bool eager;       /* open it before the tree is served */
	/* The fields below belong to the tree. */
	struct tree *_Atomic tree; /* NULL: not opened yet */
	struct error failure;      /* of the last attempt to open it */
	bool opening;
	uint64_t parent; /* inode number of the directory that has it */
	char *name;
	uint32_t number;
};

/*
 * Show `g` in the place of node `node` of the files of `dir`.  Its entry is `name` in
 * node `in` of the same files.  The tree owns `g` from now on, also after a failure.
 * Returns 0 or -errno; in the latter case tree_finish fails, too.
 */
int tree_add_graft(struct tree_builder *b, uint32_t dir, uint64_t in,
		   uint64_t node, const char *name, struct graft *g);

/* Set *err to the reason why the graft with this inode number could not be opened, and
 * return its code; 0 if no attempt failed. */
int tree_graft_failure(const struct tree *t, uint64_t ino, struct error *err);
/* Return graft number `i`, opened or not; NULL at the end. */
struct graft *tree_graft(const struct tree *t, uint32_t i);
/* Open a graft, unless it is open; waits while another thread opens it.  Returns 0 or
 * the error of graft_ops.open.  Blocks. */
int tree_graft_open(const struct tree *t, struct graft *g, struct error *err);

#endif
