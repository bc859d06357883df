/* SPDX-License-Identifier: BSD-2-Clause */
/* A finished tree: inode numbers, lookup, listing. */
#include "tree/tree_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

/*
 * Only directories (and symlinks) are in memory; a file is a number.
 *
 *     ino = directory << 40 | node + 1
 *
 * Encoding and decoding are a shift and a mask; there is no table of inodes, no lock,
 * nothing to forget.  A plain directory is an array slice of its children in order of
 * names, so lookup is a binary search and position i of a listing is child i.  In a
 * directory backed by `files` every call is passed on, with the node's number; the
 * directory itself is node 0 there.
 *
 * Node 0 may have children of both kinds (a dataset's files and its fields/).  The
 * builder ensures that no name is in both.  Listing them is a merge that is not stored:
 * entry j of `files` comes after j entries of `files` and after all own children with
 * lower names, which one binary search counts.  These positions grow with j, so a
 * second binary search finds the entry at position i.
 *
 * A node of `files` may be a graft (graft.h): then the root of another tree stands in
 * its place, and `node.tree` is the tree that a node belongs to.
 *
 * Every number is checked at each use, because the kernel and NFS clients may pass any
 * number.
 */

void tree_free(struct tree *t)
{
	uint32_t i;

	if (!t)
		return;
	tree_forest_free(t);
	for (i = 0; i < t->n; i++) {
		struct files *f = t->dir[i].files, *extra = t->dir[i].extra;

		if (extra)
			extra->ops->free(extra);
		if (f)
			f->ops->free(f);
	}
	free(t->dir);
	free(t->text);
	free(t);
}

/* ---- nodes -------------------------------------------------------------- */

bool tree_attr_is_slow(const struct node *n)
{
	return n->files && n->files->ops->attr_is_slow &&
	       n->files->ops->attr_is_slow(n->files, n->node);
}

/* Set the type of a node of `files`.  Returns -ENOENT if there is no such node. */
static int files_type(struct node *n)
{
	uint64_t parent;
	struct attr a = {0};
	int r;

	if (n->node == 0) {
		n->type = S_IFDIR;
		return 0;
	}
	r = n->files->ops->parent(n->files, n->node, &parent);
	if (r < 0)
		return r;
	/* Attributes are slow only for generated texts, never for directories. */
	n->type = S_IFREG;
	if (tree_attr_is_slow(n))
		return 0;
	r = n->files->ops->attr(n->files, n->node, NULL, &a, NULL);
	if (r < 0)
		return r;
	n->type = a.mode & S_IFMT;
	return 0;
}

/* Describe the node of tree directory `i` itself. */
static void dir_node(const struct tree *t, uint32_t i, struct node *out)
{
	out->ino = tree_ino(t, i, 0);
	out->type = tree_is_link(&t->dir[i]) ? S_IFLNK : S_IFDIR;
	out->files = t->dir[i].files;
	out->node = 0;
	out->dir = i;
	out->tree = t;
	out->graft = NULL;
}

/* Describe the root of a graft, whether it is open or not. */
static void graft_node(const struct tree *t, struct graft *g, struct node *out)
{
	const struct tree *sub = atomic_load(&g->tree);
	const struct tree number = {.number = g->number + 1};

	out->ino = tree_ino(&number, 0, 0);
	out->type = S_IFDIR;
	out->files = sub ? sub->dir[0].files : NULL;
	out->node = 0;
	out->dir = 0;
	out->tree = sub ? sub : t;
	out->graft = g;
}

/* Describe node `node` of the files that back `dir`; its type is known. */
static int sub_node(const struct node *dir, uint64_t node, uint32_t type,
		    struct node *out)
{
	struct graft *g = tree_graft_at(dir->tree, dir->dir, node);

	if (g) {
		graft_node(dir->tree, g, out);
		return 0;
	}
	out->ino = tree_ino(dir->tree, dir->dir, node);
	out->type = type;
	out->files = dir->files;
	out->node = node;
	out->dir = dir->dir;
	out->tree = dir->tree;
	out->graft = NULL;
	return out->ino ? 0 : -EOVERFLOW;
}

/* Return the node number of a directory's extra file: the last one that `files` can
 * have. */
static uint64_t extra_number(const struct tree *t)
{
	return (t->number ? UINT32_MAX : FILES_NODE_MAX) - 1;
}

static int extra_node(const struct tree *t, uint32_t dir, struct node *out)
{
	dir_node(t, dir, out);
	out->node = extra_number(t);
	out->ino = tree_ino(t, dir, out->node);
	out->files = t->dir[dir].extra;
	return out->ino ? files_type(out) : -EOVERFLOW;
}

/* Describe the node of tree `t` with these numbers. */
static int local_node(const struct tree *t, uint32_t dir, uint64_t node,
		      struct node *out)
{
	if (dir >= t->n || node == UINT64_MAX)
		return -ENOENT;
	dir_node(t, dir, out);
	if (node == 0)
		return 0;
	if (t->dir[dir].extra && node == extra_number(t))
		return extra_node(t, dir, out);
	if (!out->files)
		return -ENOENT;
	out->ino = tree_ino(t, dir, node);
	out->node = node;
	return out->ino ? files_type(out) : -ENOENT;
}

int tree_node(const struct tree *t, uint64_t ino, struct node *out)
{
	uint64_t node;
	uint32_t dir;
	struct graft *g = tree_ino_graft(t, ino, &dir, &node);

	if (ino >> 63 && !g)
		return -ENOENT;
	if (!g)
		return local_node(t, dir, node, out);
	if (dir == 0 && node == 0) {
		graft_node(t, g, out);
		return 0;
	}
	/* An NFS client may pass the number of a graft that this mount did not open
	 * yet. */
	if (tree_graft_open(t, g, NULL) < 0)
		return -ENOENT;
	return local_node(atomic_load(&g->tree), dir, node, out);
}

/* Describe a directory that is looked into; a graft is opened for that. */
static int tree_dir_node(const struct tree *t, uint64_t ino, struct node *out)
{
	int r = tree_node(t, ino, out);

	if (r < 0 || out->type != S_IFDIR)
		return r < 0 ? r : -ENOTDIR;
	if (!out->graft || out->files)
		return 0;
	r = tree_graft_open(t, out->graft, NULL);
	if (r == 0)
		graft_node(t, out->graft, out);
	return r;
}

int tree_hold(const struct tree *t, uint64_t ino, int64_t n)
{
	uint64_t node;
	uint32_t dir;
	struct graft *g = tree_ino_graft(t, ino, &dir, &node);
	struct files *f;

	if (g)
		t = atomic_load(&g->tree);
	if ((ino >> 63 && !g) || !t || dir >= t->n || !node ||
	    node == UINT64_MAX)
		return 0;
	f = t->dir[dir].files;
	return f && f->ops->hold ? f->ops->hold(f, node, n) : 0;
}

int tree_parent(const struct tree *t, uint64_t ino, uint64_t *parent)
{
	struct node n;
	int r;

	r = tree_node(t, ino, &n);
	if (r < 0)
		return r;
	if (n.graft) {
		*parent = n.graft->parent;
		return 0;
	}
	if (n.node == 0) {
		*parent = tree_ino(n.tree, n.tree->dir[n.dir].parent, 0);
		return 0;
	}
	r = n.files->ops->parent(n.files, n.node, &n.node);
	if (r < 0)
		return r;
	*parent = tree_ino(n.tree, n.dir, n.node);
	return 0;
}

/* ---- names -------------------------------------------------------------- */

/* Return the number of own children with lower names; *found is set if the next one has
 * this name.  The search ends at an equal name, as most lookups find one. */
static uint32_t dir_rank(const struct tree *t, const struct dir *d,
			 const char *name, bool *found)
{
	uint32_t lo = 0, hi = d->count;

	*found = false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = strcmp(t->text + t->dir[d->first + mid].name, name);

		if (c == 0) {
			*found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Find an entry that is not listed; there are few. */
static int hidden_node(const struct node *dir, const char *name,
		       struct node *out)
{
	const struct tree *t = dir->tree;
	const struct dir *d = &t->dir[dir->dir];
	uint64_t node;

	for (uint32_t i = d->count; i < d->count + d->hidden; i++)
		if (!strcmp(t->text + t->dir[d->first + i].name, name)) {
			dir_node(t, d->first + i, out);
			return 0;
		}
	return d->extra && d->extra->ops->find(d->extra, 0, name, &node) == 0
		       ? extra_node(t, dir->dir, out)
		       : -ENOENT;
}

int tree_lookup(const struct tree *t, uint64_t parent, const char *name,
		struct node *out)
{
	struct node dir;
	uint64_t node;
	int r;

	r = tree_dir_node(t, parent, &dir);
	if (r < 0)
		return r;
	if (!strcmp(name, "."))
		return tree_node(t, parent, out);
	if (!strcmp(name, "..")) {
		r = tree_parent(t, parent, &node);
		return r < 0 ? r : tree_node(t, node, out);
	}
	if (dir.node == 0) {
		const struct dir *d = &dir.tree->dir[dir.dir];
		bool found;
		uint32_t i = dir_rank(dir.tree, d, name, &found);

		if (found) {
			dir_node(dir.tree, d->first + i, out);
			return 0;
		}
	}
	r = dir.files ? dir.files->ops->find(dir.files, dir.node, name, &node)
		      : -ENOENT;
	if (r == -ENOENT && dir.node == 0)
		return hidden_node(&dir, name, out);
	if (r < 0)
		return r;
	r = sub_node(&dir, node, 0, out);
	return r < 0 ? r : out->graft ? 0 : files_type(out);
}

static int tree_copy_name(const char *from, char *name, size_t n)
{
	size_t len = strlen(from) + 1;

	if (len > n)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	return 0;
}

/* Return how many entries of a directory the tree itself has; the next function returns
 * how many its `files` have. */
static uint32_t dir_own_count(const struct node *dir)
{
	return dir->node == 0 ? dir->tree->dir[dir->dir].count : 0;
}
static uint64_t dir_files_count(const struct node *dir)
{
	return dir->files ? dir->files->ops->count(dir->files, dir->node) : 0;
}

uint64_t tree_entry_count(const struct tree *t, uint64_t dir_ino)
{
	struct node dir;

	if (tree_dir_node(t, dir_ino, &dir) < 0)
		return 0;
	return dir_own_count(&dir) + dir_files_count(&dir);
}

/* Describe entry i of a directory's own children. */
static int dir_own_entry(const struct node *dir, uint64_t i, struct node *out,
			 char *name, size_t n)
{
	const struct tree *t = dir->tree;
	const struct dir *d = &t->dir[dir->dir];

	if (i >= d->count)
		return -EIO; /* `files` are not listed in order of names */
	dir_node(t, d->first + (uint32_t)i, out);
	return tree_copy_name(t->text + t->dir[out->dir].name, name, n);
}

/* Describe entry j of the directory's `files`. */
static int dir_files_entry(const struct node *dir, uint64_t j, struct node *out,
			   char *name, size_t n)
{
	const struct files_ops *ops = dir->files->ops;
	uint32_t type;
	uint64_t node = ops->child(dir->files, dir->node, j, &type);
	int r = sub_node(dir, node, type, out);

	return r < 0 ? r : ops->name(dir->files, dir->node, j, name, n);
}

/* Set *position to the position of entry j of `files` in the merged listing. */
static int merged_position(const struct node *dir, uint64_t j,
			   uint64_t *position)
{
	char name[FILES_NAME_MAX + 1];
	bool found;
	int r = dir->files->ops->name(dir->files, dir->node, j, name,
				      sizeof name);

	if (r < 0)
		return r;
	*position = j + dir_rank(dir->tree, &dir->tree->dir[dir->dir], name,
				 &found);
	return 0;
}

/* Set *before to the number of entries of `files` that come before position i of the
 * merged listing; *exact is set if the next one is at position i. */
static int merged_before(const struct node *dir, uint64_t i, uint64_t *before,
			 bool *exact)
{
	struct bisect b = bisect_in(0, dir_files_count(dir));
	uint64_t position;

	*exact = false;
	while (bisect_next(&b)) {
		int r = merged_position(dir, b.mid, &position);

		if (r < 0)
			return r;
		*exact |= position == i;
		bisect_answer(&b, position >= i);
	}
	*before = b.lo;
	return 0;
}

int tree_entry(const struct tree *t, uint64_t dir_ino, uint64_t i,
	       struct node *out, char *name, size_t n)
{
	uint64_t own, others, before;
	struct node dir;
	bool exact;
	int r;

	r = tree_dir_node(t, dir_ino, &dir);
	if (r < 0)
		return r;
	own = dir_own_count(&dir);
	others = dir_files_count(&dir);
	if (i >= own + others)
		return -ENOENT;
	if (!others)
		return dir_own_entry(&dir, i, out, name, n);
	if (!own)
		return dir_files_entry(&dir, i, out, name, n);
	r = merged_before(&dir, i, &before, &exact);
	if (r < 0)
		return r;
	return exact ? dir_files_entry(&dir, before, out, name, n)
		     : dir_own_entry(&dir, i - before, out, name, n);
}

int tree_skip(const struct tree *t, uint64_t dir_ino, uint64_t *i,
	      struct pinner *p, struct error *err)
{
	struct node dir;

	if (tree_dir_node(t, dir_ino, &dir) == 0 && dir.files &&
	    dir.files->ops->skip && !dir_own_count(&dir))
		return dir.files->ops->skip(dir.files, dir.node, i, p, err);
	return 0;
}
