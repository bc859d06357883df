/* SPDX-License-Identifier: BSD-2-Clause */
/* Building a tree: append entries, then sort, number and pack them. */
#include "tree/build_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * While building, entries stand in the order of their addition and know their parent.
 * Finishing takes four steps, O(n log n) in all:
 *
 *   gather   a counting sort by parent: `kids` has each directory's children
 *            as neighbours, start[d] .. start[d + 1]
 *   sort     each such run by name, byte order
 *   rename   of equal names, the first one added stays, the others get "~2" ...;
 *            names that the directory's `files` have stay, too
 *   number   breadth-first from the root; since a queue hands out numbers to
 *            whole runs at a time, children stay neighbours, and the numbers
 *            depend on the names alone: mounting again gives the same ones
 *
 * The first failure is remembered and makes tree_finish fail, so a source may add
 * entries without checking each result.
 */

/* The children of all directories, as numbers of entries. */
struct kids {
	uint32_t *start; /* n + 1 */
	uint32_t *at;    /* n - 1: every entry but the root, once */
};

void build_fail(struct tree_builder *b, int code, const char *why)
{
	if (!b->failed) {
		b->failed = code;
		b->why = why;
	}
}

/* ---- adding ------------------------------------------------------------- */

uint32_t build_text_add(struct tree_builder *b, const char *s)
{
	size_t len = strlen(s) + 1, at = b->text_used;

	if (len > TREE_NO_TEXT - at) {
		build_fail(b, -EOVERFLOW, "its names take more than 4 GiB");
		return TREE_NO_TEXT;
	}
	if (len > b->text_room - at) {
		size_t want = b->text_room * 2 > at + len ? b->text_room * 2
							  : at + len + 64;
		char *p = realloc(b->text, want);

		if (!p) {
			build_fail(b, -ENOMEM, NULL);
			return TREE_NO_TEXT;
		}
		b->text = p;
		b->text_room = want;
	}
	memcpy(b->text + at, s, len);
	b->text_used += len;
	return (uint32_t)at;
}

struct tree_builder *tree_builder_new(void)
{
	const struct build_entry root = {.stored = TREE_NO_TEXT,
					 .target = TREE_NO_TEXT};
	struct tree_builder *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	if (build_text_add(b, "") != 0 || !vec_push(&b->entries, root)) {
		tree_builder_free(b);
		return NULL;
	}
	return b;
}

void tree_builder_free(struct tree_builder *b)
{
	size_t i;

	if (!b)
		return;
	for (i = 0; i < b->entries.n; i++) {
		struct files *f = b->entries.at[i].files;

		if (f)
			f->ops->free(f);
		f = b->entries.at[i].extra;
		if (f)
			f->ops->free(f);
	}
	for (i = 0; i < b->grafts.n; i++) {
		struct graft *g = b->grafts.at[i].graft;

		free(g->name);
		g->ops->free(g);
	}
	vec_free(&b->grafts);
	vec_free(&b->entries);
	free(b->text);
	free(b);
}

static uint32_t build_add_entry(struct tree_builder *b, uint32_t parent,
				const char *name, const char *target,
				int64_t mtime)
{
	struct build_entry e = {.mtime = mtime,
				.parent = parent,
				.stored = TREE_NO_TEXT,
				.target = TREE_NO_TEXT};
	char usable[FILES_NAME_MAX + 1];

	if (parent >= b->entries.n ||
	    b->entries.at[parent].target != TREE_NO_TEXT) {
		build_fail(b, -EINVAL,
			   "an entry was added to something that is not a "
			   "directory");
		return UINT32_MAX;
	}
	if (b->entries.n >= TREE_DIR_MAX) {
		build_fail(b, -EOVERFLOW,
			   "it has more than 16 million directories");
		return UINT32_MAX;
	}
	if (tree_escape(name, usable)) {
		e.stored = build_text_add(b, name);
		if (e.stored == TREE_NO_TEXT)
			return UINT32_MAX;
	}
	e.name = build_text_add(b, usable);
	if (e.name == TREE_NO_TEXT)
		return UINT32_MAX;
	if (target) {
		e.target = build_text_add(b, target);
		if (e.target == TREE_NO_TEXT)
			return UINT32_MAX;
	}
	if (!vec_push(&b->entries, e)) {
		build_fail(b, -ENOMEM, NULL);
		return UINT32_MAX;
	}
	return (uint32_t)b->entries.n - 1;
}

uint32_t tree_add_dir(struct tree_builder *b, uint32_t parent, const char *name,
		      int64_t mtime)
{
	return build_add_entry(b, parent, name, NULL, mtime);
}

uint32_t tree_add_hidden(struct tree_builder *b, uint32_t parent,
			 const char *name, int64_t mtime)
{
	uint32_t dir = build_add_entry(b, parent, name, NULL, mtime);

	if (dir != UINT32_MAX)
		b->entries.at[dir].hidden = true;
	return dir;
}

uint32_t tree_add_link(struct tree_builder *b, uint32_t parent,
		       const char *name, const char *target, int64_t mtime)
{
	return build_add_entry(b, parent, name, target, mtime);
}

void tree_set_files(struct tree_builder *b, uint32_t dir, struct files *f)
{
	if (dir >= b->entries.n || b->entries.at[dir].files ||
	    b->entries.at[dir].target != TREE_NO_TEXT) {
		build_fail(b, -EINVAL,
			   "files were added to something that is not a "
			   "directory or has files");
		f->ops->free(f);
		return;
	}
	b->entries.at[dir].files = f;
}

void tree_set_extra(struct tree_builder *b, uint32_t dir, struct files *f)
{
	if (dir >= b->entries.n || b->entries.at[dir].extra ||
	    b->entries.at[dir].target != TREE_NO_TEXT) {
		build_fail(b, -EINVAL,
			   "a file was added to something that is not a "
			   "directory or has one");
		f->ops->free(f);
		return;
	}
	b->entries.at[dir].extra = f;
}

int tree_add_graft(struct tree_builder *b, uint32_t dir, uint64_t in,
		   uint64_t node, const char *name, struct graft *g)
{
	const struct tree_graft at = {node, dir, dir, in, g};

	g->name = strdup(name);
	if (g->name && dir < b->entries.n && vec_push(&b->grafts, at))
		return 0;
	build_fail(b, -ENOMEM, NULL);
	free(g->name);
	g->ops->free(g);
	return -ENOMEM;
}

/* ---- gather, sort ------------------------------------------------------- */

static int kids_gather(const struct tree_builder *b, struct kids *k)
{
	size_t n = b->entries.n, i;

	k->start = calloc(n + 2, sizeof *k->start);
	k->at = malloc(n * sizeof *k->at);
	if (!k->start || !k->at)
		return -ENOMEM;
	/* Shifted by one more, start[p + 1] can serve as the cursor of p. */
	for (i = 1; i < n; i++)
		k->start[b->entries.at[i].parent + 2]++;
	for (i = 2; i < n + 2; i++)
		k->start[i] += k->start[i - 1];
	for (i = 1; i < n; i++)
		k->at[k->start[b->entries.at[i].parent + 1]++] = (uint32_t)i;
	return 0;
}

/* ---- number ------------------------------------------------------------- */

/* Append a string to the tree's text, which has room for it, and return its offset. */
static uint32_t text_pack(struct tree *t, const struct tree_builder *b,
			  uint32_t from)
{
	size_t len, at = t->text_size;

	if (from == TREE_NO_TEXT)
		return TREE_NO_TEXT;
	len = strlen(b->text + from) + 1;
	memcpy(t->text + at, b->text + from, len);
	t->text_size += len;
	return (uint32_t)at;
}

/* Return the number of an entry's children that are listed; these come first. */
static uint32_t kids_listed(const struct tree_builder *b, const struct kids *k,
			    uint32_t e)
{
	uint32_t n = k->start[e + 1];

	while (n > k->start[e] && b->entries.at[k->at[n - 1]].hidden)
		n--;
	return n - k->start[e];
}

static void dir_fill(struct tree *t, const struct tree_builder *b,
		     const struct kids *k, const uint32_t *order, uint32_t i,
		     uint32_t first)
{
	uint32_t e = order[i], j, all;
	const struct build_entry *from = &b->entries.at[e];
	struct dir *d = &t->dir[i];

	d->files = from->files;
	d->extra = from->extra;
	d->mtime = from->mtime;
	d->first = first;
	all = k->start[e + 1] - k->start[e];
	d->count = kids_listed(b, k, e);
	d->hidden = all - d->count;
	d->name = text_pack(t, b, from->name);
	d->stored = text_pack(t, b, from->stored);
	d->target = text_pack(t, b, from->target);
	for (j = 0; j < all; j++) {
		const struct build_entry *kid;

		kid = &b->entries.at[order[first + j]];
		t->dir[first + j].parent = i;
		if (i == 0 && kid->mtime > d->mtime)
			d->mtime = kid->mtime;
	}
}

/* Move the grafts to the tree, in which directories have other numbers. */
static int graft_number(struct tree_builder *b, const uint32_t *order,
			struct tree *t)
{
	cleanup_free uint32_t *dir_of = NULL;

	if (!b->grafts.n)
		return 0;
	dir_of = malloc(b->entries.n * sizeof *dir_of);
	if (!dir_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->entries.n; i++)
		dir_of[order[i]] = i;
	for (size_t i = 0; i < b->grafts.n; i++)
		b->grafts.at[i].dir = b->grafts.at[i].parent_dir =
			dir_of[b->grafts.at[i].dir];
	t->graft = b->grafts.at;
	t->n_grafts = (uint32_t)b->grafts.n;
	return 0;
}

static int build_number(struct tree_builder *b, const struct kids *k,
			struct tree *t)
{
	size_t n = b->entries.n;
	cleanup_free uint32_t *order = malloc(n * sizeof *order);
	uint32_t i, next = 1;

	t->dir = calloc(n, sizeof *t->dir);
	t->text = malloc(b->text_used); /* each string is used at most once */
	if (!order || !t->dir || !t->text)
		return -ENOMEM;
	order[0] = 0;
	for (i = 0; i < n; i++) {
		uint32_t first = k->start[order[i]];
		uint32_t count = k->start[order[i] + 1] - first;

		if (count)
			memcpy(&order[next], &k->at[first],
			       count * sizeof *order);
		dir_fill(t, b, k, order, i, next);
		next += count;
	}
	t->n = (uint32_t)n;
	return graft_number(b, order, t);
}

static int build_all(struct tree_builder *b, struct kids *k, struct tree *t)
{
	uint32_t e;
	int r;

	r = kids_gather(b, k);
	for (e = 0; e < b->entries.n && r == 0; e++) {
		struct run run = {k->at + k->start[e],
				  k->start[e + 1] - k->start[e],
				  b->entries.at[e].files};

		run_sort(b, &run);
		run.n = kids_listed(b, k, e);
		r = run_unique(b, &run);
	}
	return r < 0 ? r : build_number(b, k, t);
}

int tree_finish(struct tree_builder *b, struct tree **out, struct error *err)
{
	struct kids k = {NULL, NULL};
	struct tree *t = NULL;
	int r = b->failed;

	*out = NULL;
	if (r == 0) {
		t = calloc(1, sizeof *t);
		r = t ? build_all(b, &k, t) : -ENOMEM;
	}
	if (r == 0)
		r = tree_forest_new(t);
	free(k.start);
	free(k.at);
	if (r < 0) {
		/* All `files` and grafts still belong to the builder. */
		if (t)
			t->n = t->n_grafts = 0, t->graft = NULL;
		tree_free(t);
		if (r == -ENOMEM)
			return error_no_memory(err, "the tree of directories");
		return error_set(
			err, r, "the tree cannot be built: %s",
			b->why ? b->why
			       : "too many entries have the same name");
	}
	b->entries.n = b->grafts.n = 0;
	b->grafts.at = NULL;
	build_fail(b, -EINVAL, "it is already finished");
	*out = t;
	return 0;
}
