/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of one directory are sorted and made unique. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "tree/build_internal.h"

#define RENAME_ROUNDS 16

static const char *build_entry_name(const struct tree_builder *b,
				    uint32_t entry)
{
	return b->text + b->entries.at[entry].name;
}

static int compare_kids(const void *a, const void *b, void *builder)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct tree_builder *t = builder;
	int c = (int)t->entries.at[x].hidden - (int)t->entries.at[y].hidden;

	if (!c)
		c = strcmp(build_entry_name(builder, x),
			   build_entry_name(builder, y));
	return c ? c : (x > y) - (x < y);
}

void run_sort(struct tree_builder *b, const struct run *run)
{
	size_t i;

	for (i = 1; i < run->n; i++) /* most sources add entries in order */
		if (compare_kids(&run->at[i - 1], &run->at[i], b) > 0)
			break;
	if (i < run->n)
		qsort_r(run->at, run->n, sizeof *run->at, compare_kids, b);
}

/* Return true if the directory's `files` have this name. */
static bool run_files_have(const struct run *run, const char *name)
{
	uint64_t node;

	return run->files &&
	       run->files->ops->find(run->files, 0, name, &node) == 0;
}

static bool run_has(const struct tree_builder *b, const struct run *run,
		    const char *name)
{
	struct bisect at = bisect_in(0, run->n);

	while (bisect_next(&at))
		bisect_answer(&at, strcmp(build_entry_name(b, run->at[at.mid]),
					  name) >= 0);
	return (at.lo < run->n &&
		!strcmp(build_entry_name(b, run->at[at.lo]), name)) ||
	       run_files_have(run, name);
}

/* Return true if child i has the name of the child before it. */
static bool run_repeats(const struct tree_builder *b, const struct run *run,
			size_t i)
{
	return i > 0 && !strcmp(build_entry_name(b, run->at[i - 1]),
				build_entry_name(b, run->at[i]));
}

/* Set *name to the next free name for entry `e` of the form "base~N", N > *number. */
static int run_number_entry(struct tree_builder *b, const struct run *run,
			    uint32_t e, unsigned *number, uint32_t *name)
{
	char longer[FILES_NAME_MAX + 16], usable[FILES_NAME_MAX + 1];

	do {
		snprintf(longer, sizeof longer, "%s~%u", build_entry_name(b, e),
			 ++*number);
		tree_escape(longer, usable);
	} while (run_has(b, run, usable));
	*name = build_text_add(b, usable);
	return *name == TREE_NO_TEXT ? b->failed : 0;
}

/*
 * Rename each child that repeats the name before it, or has a name of `files`.  New
 * names go to `fresh` first, because the search needs the run as it was sorted.
 * Returns the number of names changed, or -errno.
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
			if (!run_files_have(run,
					    build_entry_name(b, run->at[i])))
				continue;
		}
		r = run_number_entry(b, run, run->at[i], &number, &fresh[i]);
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
 * Make the names of a run unique.  "base~N" cannot collide with the run's names (they
 * were searched) nor with that of another base, unless both were too long and were
 * shortened to the same name: then another round is needed.
 */
int run_unique(struct tree_builder *b, const struct run *run)
{
	cleanup_free uint32_t *fresh = NULL;
	ssize_t changed;
	unsigned round;
	size_t i;

	for (i = 0; i < run->n; i++)
		if (run_repeats(b, run, i) ||
		    run_files_have(run, build_entry_name(b, run->at[i])))
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
