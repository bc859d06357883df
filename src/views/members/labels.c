/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers the labels of files. */
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/vec.h"
#include "views/members/labels.h"

const char *member_view_label(const struct member_views *b, uint64_t record)
{
	const struct members *m = member_views_args(b)->m;
	uint64_t dir = m->at[record].parent;

	return dir == member_views_args(b)->root ? ""
						 : member_name(m, &m->at[dir]);
}

static const char *label_name(const struct members *m,
			      const struct member_view_labelled *l)
{
	return member_name(m, &m->at[l->dir]);
}

static int compare_label_names(const void *a, const void *b, void *members)
{
	return strcmp(label_name(members, a), label_name(members, b));
}

static int compare_labelled_dirs(const void *a, const void *b)
{
	const struct member_view_labelled *x = a, *y = b;

	return (x->dir > y->dir) - (x->dir < y->dir);
}

/* Number the labels.  A directory may be there several times, because directories below
 * it may come between its files; it is kept once. */
static void labels_number(struct member_view_labels *l, const struct members *m)
{
	uint32_t label = 0;
	uint64_t n = 0;

	qsort(l->at, l->n, sizeof *l->at, compare_labelled_dirs);
	for (uint64_t i = 0; i < l->n; i++)
		if (!n || l->at[n - 1].dir != l->at[i].dir)
			l->at[n++] = l->at[i];
	l->n = n;
	qsort_r(l->at, n, sizeof *l->at, compare_label_names,
		(void *)(uintptr_t)m);
	for (uint64_t i = 0; i < n; i++) {
		label += i && strcmp(label_name(m, &l->at[i - 1]),
				     label_name(m, &l->at[i])) != 0;
		l->at[i].label = label;
	}
	qsort(l->at, n, sizeof *l->at, compare_labelled_dirs);
}

struct member_view_labels *
member_view_labels_new(const struct member_views *b,
		       const struct member_view_list *list)
{
	const struct members *m = member_views_args(b)->m;
	struct member_view_labels *l = NULL;
	vec(struct member_view_labelled) dirs = VEC_EMPTY;
	bool ok = true;

	for (uint64_t i = 0; i < list->n && ok; i++) {
		const struct member_view_labelled x = {
			m->at[list->at[i]].parent, 0};

		if (x.dir == member_views_args(b)->root ||
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
			labels_number(l, m);
		}
	}
	vec_free(&dirs);
	return l;
}

bool member_view_labels_find(const struct member_view_labels *l,
			     const struct member_views *b, uint64_t record,
			     uint32_t *label)
{
	uint32_t dir = member_views_args(b)->m->at[record].parent;
	struct bisect at = bisect_in(0, l->n);

	while (bisect_next(&at))
		bisect_answer(&at, l->at[at.mid].dir >= dir);
	if (at.lo == l->n || l->at[at.lo].dir != dir)
		return false;
	*label = l->at[at.lo].label;
	return true;
}
