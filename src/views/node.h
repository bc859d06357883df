/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a tensor's directory: which entry of which view a node is. */
#ifndef VIEWS_NODE_H
#define VIEWS_NODE_H

#include "views/view.h"

#define VIEWS_MAX 64 /* one for each bit of view_options.views */

struct tensor_files {
	struct files files;
	struct tensor *tensor; /* owned */
	uint8_t n, listed, sample_axes;
	/* The rows of view_table that the tensor has: the listed ones, sorted by name,
	 * then the others. */
	uint8_t row[];
};
static inline struct tensor_files *tensor_files_of(const struct files *f)
{
	return (struct tensor_files *)f;
}

extern const struct files_ops tensor_files_ops;

/* Set *out to view k of the directory. */
void view_at(const struct tensor_files *f, unsigned k, struct view *out);
/* Return the number of the node at `depth` with these indices (depth >= 1). */
uint64_t view_node_number(const struct view *v, unsigned depth,
			  const uint64_t *at);
/* Set *out to view k of the directory with this `base`, which is as in struct view. */
void view_make(const struct tensor_files *f, unsigned k, uint64_t base,
	       struct view *out);
/* Return how many node numbers a view takes, for its entries on all levels; UINT64_MAX
 * on overflow. */
uint64_t view_numbers(const struct view *v);

/* Entries of a view's last level are numbered in C order. view_entries returns how many
 * there are (UINT64_MAX on overflow), the others the indices and the node of entry `i`. */
uint64_t view_entries(const struct view *v);
void view_entry_indices(const struct view *v, uint64_t i, uint64_t *at);
uint64_t view_entry_node(const struct view *v, uint64_t i);

/* A node of a view.  `depth` indices are set; it is a file if depth == view.levels. */
struct view_node {
	struct view view;
	unsigned depth;
	uint64_t at[RANK_MAX];
};
/* Return the levels of a view's directories. */
static inline unsigned view_levels(const struct view_ops *ops,
				   const struct tensor *t, unsigned sample_axes)
{
	return ops->samples     ? sample_axes
	       : ops->levels_of ? ops->levels_of(t)
				: ops->levels;
}
/* Operations of a view whose directories are not levels of indices.  Its entries may be
 * files of other views. */
struct view_dirs {
	/* Return the number of listed entries of a directory. */
	uint64_t (*count)(const struct tensor_files *f,
			  const struct view_node *dir);
	/* Optional, as files_ops.endless. */
	bool (*endless)(const struct tensor_files *f,
			const struct view_node *dir);
	/* Set *node to entry `i`, and `buf`, unless NULL, to its name.  Return 0 or
	 * -errno. */
	int (*entry)(const struct tensor_files *f, const struct view_node *dir,
		     uint64_t i, uint64_t *node, char *buf, size_t n);
	int (*find)(const struct tensor_files *f, const struct view_node *dir,
		    const char *name, uint64_t *node);
	/* parent and name are called only for entries that are the view's own. */
	int (*parent)(const struct tensor_files *f,
		      const struct view_node *entry, uint64_t *dir);
	int (*name)(const struct tensor_files *f, const struct view_node *entry,
		    char *buf, size_t n);
};

/* Find the view and the indices of a node.  Return 0, or -ENOENT for node 0 and for
 * numbers without an entry. */
int view_node_resolve(const struct tensor_files *f, uint64_t node,
		      struct view_node *out);
static inline bool view_node_is_file(const struct view_node *w)
{
	return w->depth == w->view.levels ||
	       (w->depth && w->view.ops->is_leaf &&
		w->view.ops->is_leaf(&w->view, w->depth, w->at));
}
/* Add to t->note that a view is left out.  Return false without memory. */
bool view_add_note(struct tensor *t, const char *top, const char *why);

/* Implement files_ops.xattr and xattr_keys. */
ssize_t view_node_xattr(struct files *files, uint64_t node, const char *key,
			struct pinner *p, char *buf, size_t n);
const char *view_node_xattr_keys(const struct files *files, uint64_t node,
				 size_t *len);
/* Implements files_ops.why_not. */
bool view_node_why_not(const struct files *files, uint64_t dir,
		       const char *name, struct error *err);

#endif
