/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a pack: by path or by a list; and which names are hard links of each
 * other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "pack/scan_private.h"

bool scan_problem(struct scan *s, const char *path, const char *what)
{
	s->n_problems++;
	return scan_say(&s->problems, path, what);
}

int scan_compare_paths(const char *a, const char *b)
{
	for (;; a++, b++) {
		unsigned x = *a == '/' ? 1 : *a ? (unsigned char)*a + 1u : 0;
		unsigned y = *b == '/' ? 1 : *b ? (unsigned char)*b + 1u : 0;

		if (x != y)
			return x < y ? -1 : 1;
		if (!x)
			return 0;
	}
}

bool scan_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !n || (!strncmp(path, dir, n) && path[n] == '/');
}

static int scan_compare_entries(const void *a, const void *b, void *arg)
{
	const struct scan *s = arg;
	const struct scan_entry *x = a, *y = b;

	return scan_compare_paths(s->text.at + x->path, s->text.at + y->path);
}

static void drop_doubles(struct scan *s)
{
	uint64_t to = 0;

	for (uint64_t i = 0; i < s->list.n; i++)
		if (!i || strcmp(s->text.at + s->list.at[to - 1].path,
				 scan_path(s, i)))
			s->list.at[to++] = s->list.at[i];
	s->list.n = to;
}

/* ---- entries that come first ------------------------------------------------- */

/* Return the number of a path in the sorted list, or UINT64_MAX if it is not in it. */
static uint64_t scan_find_path(const struct scan *s, const char *path)
{
	struct bisect b = bisect_in(0, s->list.n);

	while (bisect_next(&b))
		bisect_answer(
			&b, scan_compare_paths(scan_path(s, b.mid), path) >= 0);
	return b.lo < s->list.n && !strcmp(scan_path(s, b.lo), path)
		       ? b.lo
		       : UINT64_MAX;
}

struct ranked {
	uint64_t rank, at;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Give `name` and everything below it rank `k`, unless they have a lower rank already. */
static int scan_rank_path(struct scan *s, const char *name, uint64_t k,
			  struct ranked *r, struct error *err)
{
	cleanup_free char *path = strdup(name);
	uint64_t i;

	if (!path)
		return error_no_memory(err, "the list of files");
	i = scan_clean(path) ? *path ? scan_find_path(s, path) : 0 : UINT64_MAX;
	if (i == UINT64_MAX)
		return scan_problem(s, name, "it does not exist")
			       ? 0
			       : error_no_memory(err, "the list of files");
	do
		if (r[i].rank == UINT64_MAX)
			r[i].rank = k;
	while (++i < s->list.n && scan_is_below(scan_path(s, i), path));
	return 0;
}

/* Rank all entries: directories 0, entry k of `first` and what is below it k + 1, others
 * UINT64_MAX. */
static int rank_all(struct scan *s, const char *const *first, struct ranked *r,
		    struct error *err)
{
	int code = 0;

	for (uint64_t i = 0; i < s->list.n; i++)
		r[i] = (struct ranked){
			.rank = S_ISDIR(s->list.at[i].mode) ? 0 : UINT64_MAX,
			.at = i};
	for (uint64_t k = 0; first[k] && code == 0; k++)
		code = scan_rank_path(s, first[k], k + 1, r, err);
	return code;
}

static int put_first(struct scan *s, const char *const *first,
		     struct error *err)
{
	struct ranked *r = calloc(s->list.n + 1, sizeof *r);
	struct scan_entry *to = calloc(s->list.n + 1, sizeof *to);
	int code = r && to ? rank_all(s, first, r, err)
			   : error_no_memory(err, "the list of files");

	if (code == 0) {
		qsort(r, s->list.n, sizeof *r, by_rank);
		for (uint64_t i = 0; i < s->list.n; i++)
			to[i] = s->list.at[r[i].at];
		memcpy(s->list.at, to, s->list.n * sizeof *to);
	}
	free(r);
	free(to);
	return code;
}

/* ---- names of one inode -------------------------------------------------- */

struct name {
	uint64_t dev, ino, at;
};

static int scan_compare_inodes(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Are these names of one inode?  Inode numbers alone are not enough: files may be deleted
 * during the scan, and new ones get their numbers. */
static bool is_same_file(const struct scan_entry *a, const struct scan_entry *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mode == b->mode &&
	       a->size == b->size && a->rdev == b->rdev &&
	       a->ctime == b->ctime && a->ctime_ns == b->ctime_ns &&
	       a->mtime == b->mtime && a->mtime_ns == b->mtime_ns;
}

static int find_links(struct scan *s, struct error *err)
{
	vec(struct name) names = VEC_EMPTY;
	bool ok = true;

	for (uint64_t i = 0; i < s->list.n && ok; i++) {
		struct scan_entry *e = &s->list.at[i];
		struct name one = {e->dev, e->ino, i};

		e->same_as = i;
		if (e->nlink > 1 && !S_ISDIR(e->mode))
			ok = vec_push(&names, one);
	}
	if (ok && names.n)
		qsort(names.at, names.n, sizeof *names.at, scan_compare_inodes);
	for (size_t i = 1; i < names.n && ok; i++) {
		const struct scan_entry *a = &s->list.at[names.at[i - 1].at];
		struct scan_entry *b = &s->list.at[names.at[i].at];

		if (is_same_file(a, b))
			b->same_as = a->same_as;
	}
	vec_free(&names);
	return ok ? 0 : error_no_memory(err, "the list of files");
}

int scan_order(struct scan *s, const struct scan_options *o, struct error *err)
{
	int r = 0;

	if (s->list.n)
		qsort_r(s->list.at, s->list.n, sizeof *s->list.at,
			scan_compare_entries, s);
	drop_doubles(s);
	if (o->first && s->list.n)
		r = put_first(s, o->first, err);
	if (r == 0)
		r = find_links(s, err);
	for (uint64_t i = 0; r == 0 && i < s->list.n; i++)
		if (S_ISREG(s->list.at[i].mode) && s->list.at[i].same_as == i)
			s->bytes += s->list.at[i].size;
	return r;
}
