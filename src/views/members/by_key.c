/* SPDX-License-Identifier: BSD-2-Clause */
/* by-key/KEY/EXT: the files of each sample in a directory, as WebDataset groups them. */

/*
 * Nodes: 0 is by-key/, 1 + r the directory with record r, 1 + members + g group g.
 * Files are the members themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "views/members/keys.h"
#include "views/members/table.h"

struct view {
	struct files files; /* first member */
	struct member_views *b;
	struct keys keys;
};

static const struct view *by_key_self(const struct files *f)
{
	return (const struct view *)f;
}

static bool by_key_is_group(const struct view *v, uint64_t node)
{
	return node > v->keys.m->n;
}

static const struct keys_group *by_key_group(const struct view *v,
					     uint64_t node)
{
	return &v->keys.group[node - 1 - v->keys.m->n];
}

static uint64_t by_key_dir(const struct view *v, uint64_t node)
{
	return node ? node - 1 : member_views_args(v->b)->root;
}

static uint64_t by_key_node_of_dir(const struct view *v, uint64_t record)
{
	return record == member_views_args(v->b)->root ? 0 : 1 + record;
}

static const char *by_key_member_name(const struct view *v, uint64_t record)
{
	return member_name(v->keys.m, &v->keys.m->at[record]);
}

/* Return true if the view has such a node; the kernel and NFS clients may pass any
 * number. */
static bool by_key_is_node(const struct view *v, uint64_t node)
{
	if (by_key_is_group(v, node))
		return node - 1 - v->keys.m->n < v->keys.n_groups;
	return node == 0 || keys_has_dir(&v->keys, node - 1);
}

static int by_key_copy_name(const char *name, size_t len, char *buf, size_t n)
{
	if (len >= n)
		return -ENAMETOOLONG;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return 0;
}

/* Write the last part of a group's key. */
static int by_key_group_name(const struct view *v, const struct keys_group *g,
			     char *buf, size_t n)
{
	const char *name = by_key_member_name(v, v->keys.entry[g->first]);

	return by_key_copy_name(name, keys_base(name), buf, n);
}

/* ---- entries ------------------------------------------------------------- */

/* Set the node and type of entry i of a directory, and its name if `buf` is not NULL.
 * Groups come first, then directories, then moved files. */
static int by_key_entry(const struct view *v, uint64_t dir, uint64_t i,
			uint64_t *node, uint32_t *type, char *buf, size_t n)
{
	const struct keys *k = &v->keys;
	const struct keys_group *files;
	struct keys_slice s;
	uint32_t record;

	if (by_key_is_group(v, dir)) {
		files = by_key_group(v, dir);
	} else {
		*type = S_IFDIR;
		s = keys_groups_in(k, by_key_dir(v, dir));
		if (i < s.n) {
			*node = 1 + k->m->n + s.first + i;
			return buf ? by_key_group_name(
					     v, &k->group[s.first + i], buf, n)
				   : 0;
		}
		i -= s.n;
		s = keys_dirs_in(k, by_key_dir(v, dir));
		if (i < s.n) {
			record = k->dir[s.first + i];
			*node = 1 + (uint64_t)record;
			return buf ? by_key_copy_name(
					     by_key_member_name(v, record),
					     strlen(by_key_member_name(v,
								       record)),
					     buf, n)
				   : 0;
		}
		i -= s.n;
		files = keys_moved_in(k, by_key_dir(v, dir));
	}
	if (!files || i >= files->n)
		return -ENOENT;
	record = k->entry[files->first + i];
	*type = S_IFREG;
	*node = MEMBER_VIEW_MEMBER | member_view_node(v->b, record);
	return buf ? keys_extension(by_key_member_name(v, record), buf, n) : 0;
}

static uint64_t by_key_count(const struct files *f, uint64_t dir)
{
	const struct view *v = by_key_self(f);
	const struct keys_group *moved;

	if (!by_key_is_node(v, dir))
		return 0;
	if (by_key_is_group(v, dir))
		return by_key_group(v, dir)->n;
	moved = keys_moved_in(&v->keys, by_key_dir(v, dir));
	return keys_groups_in(&v->keys, by_key_dir(v, dir)).n +
	       keys_dirs_in(&v->keys, by_key_dir(v, dir)).n +
	       (moved ? moved->n : 0);
}

static uint64_t by_key_child(const struct files *f, uint64_t dir, uint64_t i,
			     uint32_t *type)
{
	uint64_t node = 0;

	by_key_entry(by_key_self(f), dir, i, &node, type, NULL, 0);
	return node;
}

static int by_key_name(const struct files *f, uint64_t dir, uint64_t i,
		       char *buf, size_t n)
{
	uint64_t node;
	uint32_t type;

	return by_key_is_node(by_key_self(f), dir)
		       ? by_key_entry(by_key_self(f), dir, i, &node, &type, buf,
				      n)
		       : -ENOENT;
}

static int by_key_name_of(const struct files *f, uint64_t node, char *buf,
			  size_t n)
{
	const struct view *v = by_key_self(f);
	const char *name;

	if (!by_key_is_node(v, node))
		return -ENOENT;
	if (by_key_is_group(v, node))
		return by_key_group_name(v, by_key_group(v, node), buf, n);
	name = by_key_member_name(v, by_key_dir(v, node));
	return by_key_copy_name(name, strlen(name), buf, n);
}

static int by_key_find(const struct files *f, uint64_t dir, const char *name,
		       uint64_t *node)
{
	const struct view *v = by_key_self(f);
	const struct keys_group *files;
	uint64_t found;

	if (!by_key_is_node(v, dir))
		return -ENOENT;
	if (by_key_is_group(v, dir)) {
		files = by_key_group(v, dir);
	} else {
		if (members_find(v->keys.m, by_key_dir(v, dir), name, &found) ==
			    0 &&
		    keys_has_dir(&v->keys, found)) {
			*node = 1 + found;
			return 0;
		}
		if (keys_find_group(&v->keys, by_key_dir(v, dir), name,
				    &found) == 0) {
			*node = 1 + v->keys.m->n + found;
			return 0;
		}
		files = keys_moved_in(&v->keys, by_key_dir(v, dir));
	}
	if (!files || keys_find_entry(&v->keys, files, name, &found) < 0)
		return -ENOENT;
	*node = MEMBER_VIEW_MEMBER | member_view_node(v->b, found);
	return 0;
}

static int by_key_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	const struct view *v = by_key_self(f);
	uint64_t record;

	if (!by_key_is_node(v, node) || node == 0)
		return -ENOENT;
	record = by_key_is_group(v, node)
			 ? v->keys.entry[by_key_group(v, node)->first]
			 : by_key_dir(v, node);
	*dir = by_key_node_of_dir(v, v->keys.m->at[record].parent);
	return 0;
}

static int by_key_attr(struct files *f, uint64_t node, struct pinner *p,
		       struct attr *out, struct error *err)
{
	const struct view *v = by_key_self(f);

	(void)p;
	(void)err;
	if (!by_key_is_node(v, node))
		return -ENOENT;
	member_view_attr(v->b, S_IFDIR, out);
	return 0;
}

static void by_key_free(struct files *f)
{
	struct view *v = (struct view *)f;

	keys_free(&v->keys);
	free(v);
}

static const struct files_ops view_ops = {
	.count = by_key_count,
	.child = by_key_child,
	.name = by_key_name,
	.name_of = by_key_name_of,
	.find = by_key_find,
	.parent = by_key_parent,
	.attr = by_key_attr,
	.free = by_key_free,
};

/* ---- the view ------------------------------------------------------------ */

static bool by_key_fits(const struct member_views_args *a)
{
	return a->m->counts[0] > 0;
}

static uint64_t by_key_numbers(const struct member_views_args *a)
{
	return 2 * a->m->n;
}

static int by_key_make(struct member_views *b, struct files **out,
		       struct error *err)
{
	struct view *v = calloc(1, sizeof *v);
	int r;

	if (!v)
		return error_no_memory(err, "the view by-key/");
	v->files.ops = &view_ops;
	v->b = b;
	r = keys_init(&v->keys, b, err);
	if (r < 0)
		free(v);
	else
		*out = &v->files;
	return r;
}

const struct member_view_ops member_view_by_key = {
	.name = "by-key",
	.summary = "by-key/KEY/EXT, files by sample as WebDataset groups them",
	.top = "by-key",
	.type = S_IFDIR,
	.fits = by_key_fits,
	.numbers = by_key_numbers,
	.make = by_key_make,
};
