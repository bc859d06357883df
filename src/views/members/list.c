/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of files that all member views are made of, in order of their paths. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/vec.h"
#include "views/members/private.h"

const struct member_views_args *member_views_args(const struct member_views *b)
{
	return &b->args;
}

static bool member_view_is_hidden(const struct member_views *b, uint64_t record)
{
	struct bisect at = bisect_in(0, b->n_hidden);

	while (bisect_next(&at))
		bisect_answer(&at, b->hidden[at.mid] >= record);
	return at.lo < b->n_hidden && b->hidden[at.lo] == record;
}

bool member_view_is_file(const struct member_views *b, uint64_t record)
{
	return S_ISREG(b->args.m->at[record].mode) &&
	       !member_view_is_hidden(b, record);
}

uint64_t member_view_node(const struct member_views *b, uint64_t record)
{
	const struct member_record *r = &b->args.m->at[record];

	return r->kind == MEMBER_LINK ? r->data : record;
}

/* ---- order --------------------------------------------------------------- */

/*
 * Entries of a directory are sorted by name.  Whole paths compare as if the name of a
 * directory ended in '/': "a-b" is before "a/c", and "a" before both.  In a directory
 * without subdirectories the order is the same, and nothing has to be sorted.
 */
static int compare_member_paths(const void *a, const void *b, void *ctx)
{
	const struct members *m = ctx;
	const struct member_record *x = &m->at[*(const uint32_t *)a];
	const struct member_record *y = &m->at[*(const uint32_t *)b];
	const unsigned char *p = (const unsigned char *)member_name(m, x);
	const unsigned char *q = (const unsigned char *)member_name(m, y);
	unsigned c, d;

	while (*p && *p == *q)
		p++, q++;
	c = !*p && x->kind == MEMBER_DIR ? '/' : *p;
	d = !*q && y->kind == MEMBER_DIR ? '/' : *q;
	return (c > d) - (c < d);
}

typedef vec(uint32_t) records;

/* Push the entries of a directory on the stack, the last one first. */
static bool list_push_entries(const struct members *m, uint32_t dir,
			      records *stack)
{
	const struct member_record *r = &m->at[dir];
	size_t from = stack->n;
	bool dirs = false;

	for (uint64_t i = r->size; i-- > 0;) {
		uint32_t entry = (uint32_t)(r->data + i);

		dirs |= m->at[entry].kind == MEMBER_DIR;
		if (!vec_push(stack, entry))
			return false;
	}
	if (!dirs)
		return true;
	qsort_r(stack->at + from, stack->n - from, sizeof *stack->at,
		compare_member_paths, (void *)(uintptr_t)m);
	for (size_t i = from, j = stack->n; i + 1 < j; i++) {
		uint32_t t = stack->at[i];

		stack->at[i] = stack->at[--j];
		stack->at[j] = t;
	}
	return true;
}

static struct member_view_list *list_make(const struct member_views *b)
{
	const struct members *m = b->args.m;
	struct member_view_list *list = NULL;
	records stack = VEC_EMPTY, found = VEC_EMPTY;
	bool ok = list_push_entries(m, (uint32_t)b->args.root, &stack);

	while (ok && stack.n) {
		uint32_t i = stack.at[--stack.n];

		if (m->at[i].kind == MEMBER_DIR)
			ok = list_push_entries(m, i, &stack);
		else if (member_view_is_file(b, i))
			ok = vec_push(&found, i);
	}
	if (ok)
		list = malloc(sizeof *list + found.n * sizeof *list->at);
	if (list) {
		list->n = found.n;
		if (found.n)
			memcpy(list->at, found.at, found.n * sizeof *list->at);
	}
	vec_free(&stack);
	vec_free(&found);
	return list;
}

int member_view_list(struct member_views *b,
		     const struct member_view_list **out, struct error *err)
{
	struct member_view_list *list = atomic_load(&b->list), *none = NULL;

	if (!list) {
		list = list_make(b);
		if (!list)
			return error_no_memory(
				err, "the list of an archive's files");
		if (!atomic_compare_exchange_strong(&b->list, &none, list)) {
			free(list);
			list = none;
		}
	}
	*out = list;
	return 0;
}

/* ---- samples ------------------------------------------------------------- */

/* Return the place in the list of each record.  The first call makes it, 4 bytes a
 * member.  An inode with several names has the place of the first one.  NULL if memory
 * ran out. */
static const uint32_t *member_view_places(struct member_views *b,
					  const struct member_view_list *list)
{
	uint32_t *places = atomic_load(&b->places), *none = NULL;
	size_t n = b->args.m->n;

	if (places)
		return places;
	places = malloc((n ? n : 1) * sizeof *places);
	if (!places)
		return NULL;
	memset(places, 0xff, n * sizeof *places);
	for (uint64_t i = list->n; i-- > 0;)
		places[member_view_node(b, list->at[i])] = (uint32_t)i;
	if (atomic_compare_exchange_strong(&b->places, &none, places))
		return places;
	free(places);
	return none;
}

bool member_view_sample(struct files *f, uint64_t node,
			struct files_sample *out)
{
	struct member_views *b = (struct member_views *)f;
	const struct member_view_list *list;
	const uint32_t *places;

	if (node >= b->args.m->n || !S_ISREG(b->args.m->at[node].mode) ||
	    member_view_list(b, &list, NULL) < 0 ||
	    !(places = member_view_places(b, list)) ||
	    places[node] == UINT32_MAX)
		return false;
	*out = (struct files_sample){0, places[node], list->n};
	return true;
}

uint64_t member_view_sample_node(const struct files *f, uint32_t set,
				 uint64_t i)
{
	const struct member_views *b = (const struct member_views *)f;

	(void)set;
	return member_view_node(b, atomic_load(&b->list)->at[i]);
}

/* ---- paths --------------------------------------------------------------- */

ssize_t member_view_path(const struct member_views *b, uint64_t record,
			 struct member_view_path *p)
{
	const struct members *m = b->args.m;
	size_t len = 0, at;
	char *more;

	for (uint64_t i = record; i != b->args.root; i = m->at[i].parent)
		len += strlen(member_name(m, &m->at[i])) + 1;
	if (len + 1 > p->room) {
		more = realloc(p->at, 2 * len + 64);
		if (!more)
			return -ENOMEM;
		p->at = more;
		p->room = 2 * len + 64;
	}
	at = len;
	for (uint64_t i = record; i != b->args.root; i = m->at[i].parent) {
		const char *name = member_name(m, &m->at[i]);
		size_t n = strlen(name);

		p->at[--at] = i == record ? '\0' : '/';
		at -= n;
		memcpy(p->at + at, name, n);
	}
	return (ssize_t)len - 1;
}

int member_view_put_path(const struct member_views *b, uint64_t record,
			 struct member_view_path *p, FILE *out,
			 struct error *err)
{
	ssize_t len = member_view_path(b, record, p);

	if (len < 0)
		return error_no_memory(err, "the path of a file");
	if (memchr(p->at, '\n', (size_t)len))
		return error_set(
			err, -EINVAL,
			"the path '%.200s' contains a newline, so files "
			"cannot be listed one a line; use manifest.csv or "
			"manifest.jsonl",
			p->at);
	if (out) {
		fwrite(p->at, 1, (size_t)len, out);
		fputc('\n', out);
	}
	return 0;
}

const char *member_view_extension(const char *name)
{
	const char *dot = *name ? strchr(name + 1, '.') : NULL;

	return dot ? dot : "";
}

void member_view_attr(const struct member_views *b, uint32_t type,
		      struct attr *out)
{
	const struct member_record *root = &b->args.m->at[b->args.root];

	out->mtime = member_mtime(b->args.m, root);
	out->nsec = member_nsec(root);
	out->mode = type | (S_ISDIR(type) ? 0555 : 0444);
	out->nlink = S_ISDIR(type) ? 2 : 1;
}
