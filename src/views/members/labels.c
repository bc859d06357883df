/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of files, numbered. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "views/members/labels.h"

const char *beside_label(const struct beside *b, uint64_t record)
{
	const struct members *m = beside_args(b)->m;
	uint64_t dir = m->at[record].parent;

	return dir == beside_args(b)->root ? "" : member_name(m, &m->at[dir]);
}

static const char *name_of(const struct members *m,
			   const struct beside_labelled *l)
{
	return member_name(m, &m->at[l->dir]);
}

static int by_name(const void *a, const void *b, void *members)
{
	return strcmp(name_of(members, a), name_of(members, b));
}

static int by_dir(const void *a, const void *b)
{
	const struct beside_labelled *x = a, *y = b;

	return (x->dir > y->dir) - (x->dir < y->dir);
}

/* Each directory once, though those below one may come between its files. */
static void number(struct beside_labels *l, const struct members *m)
{
	uint32_t label = 0;
	uint64_t n = 0;

	qsort(l->at, l->n, sizeof *l->at, by_dir);
	for (uint64_t i = 0; i < l->n; i++)
		if (!n || l->at[n - 1].dir != l->at[i].dir)
			l->at[n++] = l->at[i];
	l->n = n;
	qsort_r(l->at, n, sizeof *l->at, by_name, (void *)(uintptr_t)m);
	for (uint64_t i = 0; i < n; i++) {
		label += i && strcmp(name_of(m, &l->at[i - 1]),
				     name_of(m, &l->at[i])) != 0;
		l->at[i].label = label;
	}
	qsort(l->at, n, sizeof *l->at, by_dir);
}

struct beside_labels *beside_labels_new(const struct beside *b,
					const struct beside_list *list)
{
	const struct members *m = beside_args(b)->m;
	struct beside_labels *l = NULL;
	vec(struct beside_labelled) dirs = VEC_EMPTY;
	bool ok = true;

	for (uint64_t i = 0; i < list->n && ok; i++) {
		const struct beside_labelled x = {m->at[list->at[i]].parent, 0};

		if (x.dir == beside_args(b)->root ||
		    (dirs.n && dirs.at[dirs.n - 1].dir == x.dir))
			continue;
		ok = vec_push(&dirs, x);
	}
	if (ok)
		l = malloc(sizeof *l + dirs.n * sizeof *l->at);
	if (l) {
		l->n = dirs.n;
		if (dirs.n) {
			memcpy(l->at, dirs.at, dirs.n * sizeof *l->at);
			number(l, m);
		}
	}
	vec_free(&dirs);
	return l;
}

bool beside_labels_find(const struct beside_labels *l, const struct beside *b,
			uint64_t record, uint32_t *label)
{
	uint32_t dir = beside_args(b)->m->at[record].parent;
	uint64_t lo = 0, hi = l->n;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (l->at[mid].dir < dir)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n || l->at[lo].dir != dir)
		return false;
	*label = l->at[lo].label;
	return true;
}
