/* SPDX-License-Identifier: BSD-2-Clause */
/* Building a tree: append entries, then sort, number and pack them. */
#include "tree/tree_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

/*
 * While building, entries stand in the order they came and know their parent.
 * Finishing takes four steps, O(n log n) in all:
 *
 *   gather   a counting sort by parent: `kids` holds each directory's children
 *            as neighbours, start[d] .. start[d + 1]
 *   sort     each such run by name, byte order
 *   rename   of equal names, the first added keeps it, the others get "~2" ...;
 *            what the directory's `files` have keeps its name, too
 *   number   breadth-first from the root; since a queue hands out numbers to
 *            whole runs at a time, children stay neighbours, and the numbers
 *            depend on the names alone: mounting again gives the same ones
 *
 * The first thing that goes wrong is remembered and makes tree_finish fail, so
 * a source may add entries without looking at each result.
 */

#define RENAME_ROUNDS 16

struct build_entry {
	struct files *files;
	int64_t mtime;
	uint32_t parent, name, stored, target;
};

struct tree_builder {
	vec(struct build_entry) entries;
	char *text; /* text[0] is '\0': the root's name */
	size_t text_used, text_room;
	int failed;
	const char *why;
};

/* Children by number of entry, in runs; what tree_finish works on. */
struct kids {
	uint32_t *start; /* n + 1 */
	uint32_t *at;    /* n - 1: every entry but the root, once */
};

/* The children of one directory. */
struct run {
	uint32_t *at;
	size_t n;
	const struct files *files; /* of that directory, or NULL */
};

static void build_fail(struct tree_builder *b, int code, const char *why)
{
	if (!b->failed) {
		b->failed = code;
		b->why = why;
	}
}

/* ---- adding ------------------------------------------------------------- */

/* Copy a string; its offset, or TREE_NO_TEXT. */
static uint32_t text_add(struct tree_builder *b, const char *s)
{
	size_t len = strlen(s) + 1, at = b->text_used;

	if (len > TREE_NO_TEXT - at) {
		build_fail(b, -EOVERFLOW, "names of more than 4 GiB");
		return TREE_NO_TEXT;
	}
	if (len > b->text_room - at) {
		size_t want = b->text_room * 2 > at + len ? b->text_room * 2
							  : at + len + 64;
		char *p = realloc(b->text, want);

		if (!p) {
			build_fail(b, -ENOMEM, "out of memory");
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
	if (text_add(b, "") != 0 || !vec_push(&b->entries, root)) {
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
	}
	vec_free(&b->entries);
	free(b->text);
	free(b);
}

static uint32_t entry_add(struct tree_builder *b, uint32_t parent,
			  const char *name, const char *target, int64_t mtime)
{
	struct build_entry e = {.mtime = mtime,
				.parent = parent,
				.stored = TREE_NO_TEXT,
				.target = TREE_NO_TEXT};
	char usable[FILES_NAME_MAX + 1];

	if (parent >= b->entries.n ||
	    b->entries.at[parent].target != TREE_NO_TEXT) {
		build_fail(b, -EINVAL, "an entry was added to no directory");
		return UINT32_MAX;
	}
	if (b->entries.n >= TREE_DIR_MAX) {
		build_fail(b, -EOVERFLOW, "more than 16 million directories");
		return UINT32_MAX;
	}
	if (tree_escape(name, usable)) {
		e.stored = text_add(b, name);
		if (e.stored == TREE_NO_TEXT)
			return UINT32_MAX;
	}
	e.name = text_add(b, usable);
	if (e.name == TREE_NO_TEXT)
		return UINT32_MAX;
	if (target) {
		e.target = text_add(b, target);
		if (e.target == TREE_NO_TEXT)
			return UINT32_MAX;
	}
	if (!vec_push(&b->entries, e)) {
		build_fail(b, -ENOMEM, "out of memory");
		return UINT32_MAX;
	}
	return (uint32_t)b->entries.n - 1;
}

uint32_t tree_add_dir(struct tree_builder *b, uint32_t parent, const char *name,
		      int64_t mtime)
{
	return entry_add(b, parent, name, NULL, mtime);
}

uint32_t tree_add_link(struct tree_builder *b, uint32_t parent,
		       const char *name, const char *target, int64_t mtime)
{
	return entry_add(b, parent, name, target, mtime);
}

void tree_set_files(struct tree_builder *b, uint32_t dir, struct files *f)
{
	if (dir >= b->entries.n || b->entries.at[dir].files ||
	    b->entries.at[dir].target != TREE_NO_TEXT) {
		build_fail(b, -EINVAL, "files were given to no free directory");
		f->ops->free(f);
		return;
	}
	b->entries.at[dir].files = f;
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

static const char *name_of(const struct tree_builder *b, uint32_t entry)
{
	return b->text + b->entries.at[entry].name;
}

static int compare_kids(const void *a, const void *b, void *builder)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(name_of(builder, x), name_of(builder, y));

	return c ? c : (x > y) - (x < y);
}

static void run_sort(struct tree_builder *b, const struct run *run)
{
	size_t i;

	for (i = 1; i < run->n; i++) /* most sources come in order */
		if (compare_kids(&run->at[i - 1], &run->at[i], b) > 0)
			break;
	if (i < run->n)
		qsort_r(run->at, run->n, sizeof *run->at, compare_kids, b);
}

/* ---- rename ------------------------------------------------------------- */

/* Do the directory's `files` have this name? */
static bool files_have(const struct run *run, const char *name)
{
	uint64_t node;

	return run->files &&
	       run->files->ops->find(run->files, 0, name, &node) == 0;
}

static bool run_has(const struct tree_builder *b, const struct run *run,
		    const char *name)
{
	size_t lo = 0, hi = run->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(name_of(b, run->at[mid]), name);

		if (c == 0)
			return true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return files_have(run, name);
}

/* Is the name of child i that of the child before it? */
static bool run_repeats(const struct tree_builder *b, const struct run *run,
			size_t i)
{
	return i > 0 &&
	       !strcmp(name_of(b, run->at[i - 1]), name_of(b, run->at[i]));
}

/* Give entry `e` the next free name of the form "base~N", N > *number. */
static int entry_number(struct tree_builder *b, const struct run *run,
			uint32_t e, unsigned *number, uint32_t *name)
{
	char longer[FILES_NAME_MAX + 16], usable[FILES_NAME_MAX + 1];

	do {
		snprintf(longer, sizeof longer, "%s~%u", name_of(b, e),
			 ++*number);
		tree_escape(longer, usable);
	} while (run_has(b, run, usable));
	*name = text_add(b, usable);
	return *name == TREE_NO_TEXT ? b->failed : 0;
}

/*
 * Rename what repeats the name before it, or has one of `files`.  New names go
 * to `fresh` first, for the search needs the run as it was sorted.  The number
 * of names changed, or -errno.
 */
static ssize_t run_rename(struct tree_builder *b, const struct run *run,
			  uint32_t *fresh)
{
	size_t i, changed = 0;
	unsigned number = 1;

	for (i = 0; i < run->n; i++) {
		int r;

		fresh[i] = TREE_NO_TEXT;
		if (!run_repeats(b, run, i)) {
			number = 1;
			if (!files_have(run, name_of(b, run->at[i])))
				continue;
		}
		r = entry_number(b, run, run->at[i], &number, &fresh[i]);
		if (r < 0)
			return r;
		changed++;
	}
	for (i = 0; i < run->n && changed; i++) {
		struct build_entry *e = &b->entries.at[run->at[i]];

		if (fresh[i] == TREE_NO_TEXT)
			continue;
		if (e->stored == TREE_NO_TEXT)
			e->stored = e->name;
		e->name = fresh[i];
	}
	return (ssize_t)changed;
}

/*
 * Make the names of a run unique.  "base~N" can collide with none of the run's
 * names (they were searched) nor with that of another base, unless both were
 * over-long and shortened to the same: then another round is needed.
 */
static int run_unique(struct tree_builder *b, const struct run *run)
{
	cleanup_free uint32_t *fresh = NULL;
	ssize_t changed;
	unsigned round;
	size_t i;

	for (i = 0; i < run->n; i++)
		if (run_repeats(b, run, i) ||
		    files_have(run, name_of(b, run->at[i])))
			break;
	if (i >= run->n)
		return 0;
	fresh = malloc(run->n * sizeof *fresh);
	if (!fresh)
		return -ENOMEM;
	for (round = 0; round < RENAME_ROUNDS; round++) {
		changed = run_rename(b, run, fresh);
		if (changed <= 0)
			return (int)changed;
		run_sort(b, run);
	}
	return -EINVAL;
}

/* ---- number ------------------------------------------------------------- */

/* Append a string to the tree's text, which has room for it. */
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

static void dir_fill(struct tree *t, const struct tree_builder *b,
		     const struct kids *k, const uint32_t *order, uint32_t i,
		     uint32_t first)
{
	uint32_t e = order[i], j;
	const struct build_entry *from = &b->entries.at[e];
	struct dir *d = &t->dir[i];

	d->files = from->files;
	d->mtime = from->mtime;
	d->first = first;
	d->count = k->start[e + 1] - k->start[e];
	d->name = text_pack(t, b, from->name);
	d->stored = text_pack(t, b, from->stored);
	d->target = text_pack(t, b, from->target);
	d->subdirs = 0;
	for (j = 0; j < d->count; j++) {
		const struct build_entry *kid;

		kid = &b->entries.at[order[first + j]];
		t->dir[first + j].parent = i;
		d->subdirs += kid->target == TREE_NO_TEXT;
		if (i == 0 && kid->mtime > d->mtime)
			d->mtime = kid->mtime;
	}
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
	return 0;
}

static int build_all(struct tree_builder *b, struct kids *k, struct tree *t)
{
	uint32_t e;
	int r;

	r = kids_gather(b, k);
	for (e = 0; e < b->entries.n && r == 0; e++) {
		const struct run run = {k->at + k->start[e],
					k->start[e + 1] - k->start[e],
					b->entries.at[e].files};

		run_sort(b, &run);
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
	free(k.start);
	free(k.at);
	if (r < 0) {
		/* Whatever `files` there are still belong to the builder. */
		if (t)
			t->n = 0;
		tree_free(t);
		return error_set(err, r, "the tree cannot be built: %s",
				 b->why         ? b->why
				 : r == -ENOMEM ? "out of memory"
						: "too many equal names");
	}
	b->entries.n = 0;
	build_fail(b, -EINVAL, "it was finished before");
	*out = t;
	return 0;
}
