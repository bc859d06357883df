/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the index of members by sample. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "views/members/keys.h"

/*
 * Members of a directory are sorted by name, so those of a key are neighbours: all
 * names between "a.cls" and "a.jpg" begin with "a.".  The first pass finds the groups.
 * When it is known which directories have samples, a second pass moves the groups whose
 * key has the name of such a directory.
 */

/* ---- names --------------------------------------------------------------- */

static unsigned char keys_lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int compare_lower(const char *a, const char *b)
{
	while (*a && keys_lower(*a) == keys_lower(*b))
		a++, b++;
	return keys_lower(*a) - keys_lower(*b);
}

size_t keys_base(const char *name)
{
	return strcspn(name, ".");
}

int keys_extension(const char *name, char *buf, size_t n)
{
	const char *e = name + keys_base(name) + 1;

	if (strlen(e) >= n)
		return -ENAMETOOLONG;
	do
		*buf++ = (char)keys_lower(*e);
	while (*e++);
	return 0;
}

static const char *keys_member_name(const struct keys *k, uint64_t record)
{
	return member_name(k->m, &k->m->at[record]);
}

static const char *keys_member_extension(const struct keys *k, uint64_t record)
{
	const char *name = keys_member_name(k, record);

	return name + keys_base(name) + 1;
}

/* Return true if a record has a key, and an extension that can be a file name. */
static bool has_key(const struct keys *k, uint64_t record)
{
	const char *name = keys_member_name(k, record),
		   *dot = strchr(name, '.');
	uint64_t dir = k->m->at[record].parent;

	if (!dot || !dot[1] || !strcmp(dot, "..") || !strcmp(dot, "..."))
		return false;
	/* A name such as ".h.txt" in "a/b" has the key "a/b/". */
	return dot != name || (dir != member_views_args(k->b)->root &&
			       !strchr(keys_member_name(k, dir), '.'));
}

static bool keys_is_meta(const char *name)
{
	size_t n = strlen(name);

	return n >= 4 && !memcmp(name, "__", 2) &&
	       !memcmp(name + n - 2, "__", 2);
}

/* ---- building ------------------------------------------------------------ */

enum { UNDER = 1, SAMPLES = 2 }; /* below the root; with samples below */
struct building {
	struct keys *k;
	unsigned char *mark; /* UNDER and SAMPLES for each record */
	vec(uint32_t) entry;
	vec(struct keys_group) group;
	vec(struct keys_moved) moved;
	uint64_t doubles, homeless; /* numbers of files that are not shown */
};

static bool same_key(const struct keys *k, uint64_t a, uint64_t b)
{
	const char *x = keys_member_name(k, a), *y = keys_member_name(k, b);
	size_t n = keys_base(x);

	return k->m->at[a].parent == k->m->at[b].parent && keys_base(y) == n &&
	       !memcmp(x, y, n);
}

static bool keys_add_entry(struct building *x, uint32_t record)
{
	const struct keys_group next = {(uint32_t)x->entry.n, 0};
	uint64_t root = member_views_args(x->k->b)->root;

	if (!x->entry.n || !same_key(x->k, x->entry.at[x->entry.n - 1], record))
		if (!vec_push(&x->group, next))
			return false;
	if (!vec_push(&x->entry, record))
		return false;
	x->group.at[x->group.n - 1].n++;
	for (uint64_t d = x->k->m->at[record].parent; !(x->mark[d] & SAMPLES);
	     d = x->k->m->at[d].parent) {
		x->mark[d] |= SAMPLES;
		if (d == root)
			break;
	}
	return true;
}

/* Find all groups.  The records of a directory follow it, and are neighbours. */
static bool keys_find_groups(struct building *x)
{
	const struct members *m = x->k->m;
	uint64_t root = member_views_args(x->k->b)->root;

	x->mark[root] = UNDER;
	for (uint64_t i = root + 1; i < m->n; i++) {
		if (!(x->mark[m->at[i].parent] & UNDER) ||
		    (m->at[i].parent == root &&
		     keys_is_meta(keys_member_name(x->k, i))))
			continue;
		if (m->at[i].kind == MEMBER_DIR)
			x->mark[i] = UNDER;
		else if (member_view_is_file(x->k->b, i) && has_key(x->k, i) &&
			 !keys_add_entry(x, (uint32_t)i))
			return false;
	}
	return true;
}

static bool keys_find_dirs(struct building *x)
{
	struct keys *k = x->k;
	uint64_t root = member_views_args(k->b)->root, n = 0;

	for (uint64_t i = root + 1; i < k->m->n; i++)
		n += x->mark[i] >> 1 & 1;
	k->dir = malloc((n + 1) * sizeof *k->dir);
	for (uint64_t i = root + 1; k->dir && i < k->m->n; i++)
		if (x->mark[i] & SAMPLES)
			k->dir[k->n_dirs++] = (uint32_t)i;
	return k->dir != NULL;
}

static int by_extension(const void *a, const void *b, void *keys)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare_lower(keys_member_extension(keys, x),
			      keys_member_extension(keys, y));

	/* If extensions differ only in case, lower case comes first. */
	return c ? c
		 : -strcmp(keys_member_extension(keys, x),
			   keys_member_extension(keys, y));
}

/* Sort a group by extension, and keep each extension once. */
static void sort_group(struct building *x, struct keys_group *g)
{
	uint32_t *at = x->k->entry + g->first, n = 0;

	qsort_r(at, g->n, sizeof *at, by_extension, x->k);
	for (uint32_t i = 0; i < g->n; i++)
		if (!n || compare_lower(keys_member_extension(x->k, at[n - 1]),
					keys_member_extension(x->k, at[i])))
			at[n++] = at[i];
	x->doubles += g->n - n;
	g->n = n;
}

/* Return true if a group's key has the name of a directory, and set *dir to it. */
static bool keys_group_moves(const struct building *x,
			     const struct keys_group *g, uint32_t *dir)
{
	const struct keys *k = x->k;
	uint32_t record = k->entry[g->first];
	char name[FILES_NAME_MAX + 1];
	size_t n = keys_base(keys_member_name(k, record));
	uint64_t found;

	*dir = k->m->at[record].parent;
	if (n == 0)
		return true;
	if (n > FILES_NAME_MAX)
		return false;
	memcpy(name, keys_member_name(k, record), n);
	name[n] = '\0';
	if (members_find(k->m, *dir, name, &found) < 0 ||
	    !keys_has_dir(k, found))
		return false;
	*dir = (uint32_t)found;
	return true;
}

static int compare_moved_dirs(const void *a, const void *b)
{
	const struct keys_moved *x = a, *y = b;

	return (x->dir > y->dir) - (x->dir < y->dir);
}

/* Drop moved files whose extension is the name of a group or directory in the same
 * place. */
static void drop_homeless(struct building *x, struct keys_moved *v)
{
	uint32_t *at = x->k->entry + v->group.first, n = 0;
	char name[FILES_NAME_MAX + 1];
	uint64_t found;

	for (uint32_t i = 0; i < v->group.n; i++) {
		keys_extension(keys_member_name(x->k, at[i]), name,
			       sizeof name);
		if (keys_find_group(x->k, v->dir, name, &found) == 0 ||
		    (members_find(x->k->m, v->dir, name, &found) == 0 &&
		     keys_has_dir(x->k, found)))
			x->homeless++;
		else
			at[n++] = at[i];
	}
	v->group.n = n;
}

/* Join groups that move to one directory, such as "a" and "a/": their files are copied
 * behind all other entries. */
static bool keys_join_moved(struct building *x)
{
	struct keys *k = x->k;
	uint64_t end = k->n_entries, total = end;
	uint32_t *more;

	for (size_t i = 0; i < x->moved.n; i++)
		total += x->moved.at[i].group.n;
	more = realloc(k->entry, (total + 1) * sizeof *more);
	if (!more)
		return false;
	k->entry = more;
	if (x->moved.n)
		qsort(x->moved.at, x->moved.n, sizeof *x->moved.at,
		      compare_moved_dirs);
	for (size_t i = 0; i < x->moved.n; i++) {
		const struct keys_moved *v = &x->moved.at[i];

		if (!k->n_moved || k->moved[k->n_moved - 1].dir != v->dir)
			k->moved[k->n_moved++] =
				(struct keys_moved){v->dir, {(uint32_t)end, 0}};
		memcpy(more + end, more + v->group.first,
		       v->group.n * sizeof *more);
		k->moved[k->n_moved - 1].group.n += v->group.n;
		end += v->group.n;
	}
	k->n_entries = end;
	for (uint64_t i = 0; i < k->n_moved; i++) {
		sort_group(x, &k->moved[i].group);
		drop_homeless(x, &k->moved[i]);
	}
	return true;
}

static bool keys_move_groups(struct building *x)
{
	struct keys *k = x->k;

	for (uint64_t i = 0; i < x->group.n; i++) {
		struct keys_moved v = {0, x->group.at[i]};

		if (!keys_group_moves(x, &v.group, &v.dir)) {
			k->group[k->n_groups++] = v.group;
			sort_group(x, &k->group[k->n_groups - 1]);
		} else if (!vec_push(&x->moved, v)) {
			return false;
		}
	}
	k->moved = malloc((x->moved.n + 1) * sizeof *k->moved);
	return k->moved && keys_join_moved(x);
}

/* ---- warnings ------------------------------------------------------------ */

struct position {
	uint64_t at;
	uint32_t volume, group;
};

static int by_position(const void *a, const void *b)
{
	const struct position *x = a, *y = b;

	if (x->volume != y->volume)
		return x->volume < y->volume ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Return by how many the samples outnumber the keys for a program that reads a tar from
 * its beginning to its end.  UINT64_MAX if memory ran out. */
static uint64_t count_split(const struct building *x)
{
	cleanup_free struct position *p = calloc(x->entry.n + 1, sizeof *p);
	const struct members *m = x->k->m;
	uint64_t n = 0, runs = 0, groups = 0;

	if (!p)
		return UINT64_MAX;
	for (uint32_t g = 0; g < x->group.n; g++) {
		uint64_t before = n;

		for (uint32_t i = 0; i < x->group.at[g].n; i++) {
			uint32_t e = x->entry.at[x->group.at[g].first + i];
			const struct member_record *r = &m->at[e];

			if (r->kind == MEMBER_RANGE)
				p[n++] = (struct position){
					r->data, member_common(m, r)->volume,
					g};
		}
		groups += n > before;
	}
	qsort(p, n, sizeof *p, by_position);
	for (uint64_t i = 0; i < n; i++)
		runs += !i || p[i].group != p[i - 1].group ||
			p[i].volume != p[i - 1].volume;
	return runs - groups;
}

static void keys_log_odd(const struct building *x, uint64_t split)
{
	const char *source = member_views_args(x->k->b)->source;

	if (split)
		log_warn("%s: by-key/: files of some samples are not "
			 "neighbours in "
			 "the archive: WebDataset would read %" PRIu64
			 " more samples from it than by-key/ shows",
			 source, split);
	if (x->doubles)
		log_warn("%s: by-key/: %" PRIu64
			 " files are left out, because another file of their "
			 "sample has the same extension",
			 source, x->doubles);
	if (x->homeless)
		log_warn("%s: by-key/: %" PRIu64
			 " files are left out, because their name is that of a "
			 "sample or directory in the same place",
			 source, x->homeless);
}

static bool keys_build(struct building *x)
{
	struct keys *k = x->k;
	uint64_t split = 0;

	x->mark = calloc(k->m->n, 1);
	if (!x->mark || !keys_find_groups(x) || !keys_find_dirs(x))
		return false;
	if (member_views_args(k->b)->tar)
		split = count_split(x);
	k->entry = steal_pointer(&x->entry.at);
	k->n_entries = x->entry.n;
	k->group = malloc((x->group.n + 1) * sizeof *k->group);
	if (split == UINT64_MAX || !k->group || !keys_move_groups(x))
		return false;
	keys_log_odd(x, split);
	return true;
}

int keys_init(struct keys *k, const struct member_views *b, struct error *err)
{
	struct building x = {.k = k};
	bool ok;

	*k = (struct keys){.b = b, .m = member_views_args(b)->m};
	ok = keys_build(&x);
	free(x.mark);
	vec_free(&x.entry);
	vec_free(&x.group);
	vec_free(&x.moved);
	if (ok)
		return 0;
	keys_free(k);
	return error_no_memory(err, "the samples of by-key/");
}

void keys_free(struct keys *k)
{
	free(k->entry);
	free(k->group);
	free(k->moved);
	free(k->dir);
	memset(k, 0, sizeof *k);
}
