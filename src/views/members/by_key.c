/* SPDX-License-Identifier: BSD-2-Clause */
/* by-key/KEY/EXT: the files of a sample side by side, as WebDataset groups them. */

/*
 * Nodes:  0 by-key/ | 1 + record of a directory | 1 + members + number of a group.
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
	struct beside *b;
	struct keys keys;
};

static const struct view *self_of(const struct files *f)
{
	return (const struct view *)f;
}

static bool is_group(const struct view *v, uint64_t node)
{
	return node > v->keys.m->n;
}

static const struct keys_group *group_of(const struct view *v, uint64_t node)
{
	return &v->keys.group[node - 1 - v->keys.m->n];
}

static uint64_t dir_of(const struct view *v, uint64_t node)
{
	return node ? node - 1 : beside_args(v->b)->root;
}

static uint64_t node_of_dir(const struct view *v, uint64_t record)
{
	return record == beside_args(v->b)->root ? 0 : 1 + record;
}

static const char *name_of(const struct view *v, uint64_t record)
{
	return member_name(v->keys.m, &v->keys.m->at[record]);
}

/* Is it one of ours?  Numbers may come from anywhere. */
static bool is_node(const struct view *v, uint64_t node)
{
	if (is_group(v, node))
		return node - 1 - v->keys.m->n < v->keys.n_groups;
	return node == 0 || keys_has_dir(&v->keys, node - 1);
}

static int copy_name(const char *name, size_t len, char *buf, size_t n)
{
	if (len >= n)
		return -ENAMETOOLONG;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return 0;
}

/* The last part of a group's key. */
static int group_name(const struct view *v, const struct keys_group *g,
		      char *buf, size_t n)
{
	const char *name = name_of(v, v->keys.entry[g->first]);

	return copy_name(name, keys_base(name), buf, n);
}

/* ---- entries ------------------------------------------------------------- */

/* Entry i of a directory: its node, type, name (if `buf`). */
static int entry(const struct view *v, uint64_t dir, uint64_t i, uint64_t *node,
		 uint32_t *type, char *buf, size_t n)
{
	const struct keys *k = &v->keys;
	const struct keys_group *files;
	struct keys_slice s;
	uint32_t record;

	if (is_group(v, dir)) {
		files = group_of(v, dir);
	} else {
		*type = S_IFDIR;
		s = keys_groups_in(k, dir_of(v, dir));
		if (i < s.n) {
			*node = 1 + k->m->n + s.first + i;
			return buf ? group_name(v, &k->group[s.first + i], buf,
						n)
				   : 0;
		}
		i -= s.n;
		s = keys_dirs_in(k, dir_of(v, dir));
		if (i < s.n) {
			record = k->dir[s.first + i];
			*node = 1 + (uint64_t)record;
			return buf ? copy_name(name_of(v, record),
					       strlen(name_of(v, record)), buf,
					       n)
				   : 0;
		}
		i -= s.n;
		files = keys_moved_in(k, dir_of(v, dir));
	}
	if (!files || i >= files->n)
		return -ENOENT;
	record = k->entry[files->first + i];
	*type = S_IFREG;
	*node = BESIDE_MEMBER | beside_node(v->b, record);
	return buf ? keys_extension(name_of(v, record), buf, n) : 0;
}

static uint64_t kv_count(const struct files *f, uint64_t dir)
{
	const struct view *v = self_of(f);
	const struct keys_group *moved;

	if (!is_node(v, dir))
		return 0;
	if (is_group(v, dir))
		return group_of(v, dir)->n;
	moved = keys_moved_in(&v->keys, dir_of(v, dir));
	return keys_groups_in(&v->keys, dir_of(v, dir)).n +
	       keys_dirs_in(&v->keys, dir_of(v, dir)).n +
	       (moved ? moved->n : 0);
}

static uint64_t kv_child(const struct files *f, uint64_t dir, uint64_t i,
			 uint32_t *type)
{
	uint64_t node = 0;

	entry(self_of(f), dir, i, &node, type, NULL, 0);
	return node;
}

static int kv_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		   size_t n)
{
	uint64_t node;
	uint32_t type;

	return is_node(self_of(f), dir)
		       ? entry(self_of(f), dir, i, &node, &type, buf, n)
		       : -ENOENT;
}

static int kv_name_of(const struct files *f, uint64_t node, char *buf, size_t n)
{
	const struct view *v = self_of(f);
	const char *name;

	if (!is_node(v, node))
		return -ENOENT;
	if (is_group(v, node))
		return group_name(v, group_of(v, node), buf, n);
	name = name_of(v, dir_of(v, node));
	return copy_name(name, strlen(name), buf, n);
}

static int kv_find(const struct files *f, uint64_t dir, const char *name,
		   uint64_t *node)
{
	const struct view *v = self_of(f);
	const struct keys_group *files;
	uint64_t found;

	if (!is_node(v, dir))
		return -ENOENT;
	if (is_group(v, dir)) {
		files = group_of(v, dir);
	} else {
		if (members_find(v->keys.m, dir_of(v, dir), name, &found) ==
			    0 &&
		    keys_has_dir(&v->keys, found)) {
			*node = 1 + found;
			return 0;
		}
		if (keys_find_group(&v->keys, dir_of(v, dir), name, &found) ==
		    0) {
			*node = 1 + v->keys.m->n + found;
			return 0;
		}
		files = keys_moved_in(&v->keys, dir_of(v, dir));
	}
	if (!files || keys_find_entry(&v->keys, files, name, &found) < 0)
		return -ENOENT;
	*node = BESIDE_MEMBER | beside_node(v->b, found);
	return 0;
}

static int kv_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	const struct view *v = self_of(f);
	uint64_t record;

	if (!is_node(v, node) || node == 0)
		return -ENOENT;
	record = is_group(v, node) ? v->keys.entry[group_of(v, node)->first]
				   : dir_of(v, node);
	*dir = node_of_dir(v, v->keys.m->at[record].parent);
	return 0;
}

static int kv_attr(struct files *f, uint64_t node, struct pinner *p,
		   struct attr *out, struct error *err)
{
	const struct view *v = self_of(f);

	(void)p;
	(void)err;
	if (!is_node(v, node))
		return -ENOENT;
	beside_attr(v->b, S_IFDIR, out);
	return 0;
}

static void kv_free(struct files *f)
{
	struct view *v = (struct view *)f;

	keys_free(&v->keys);
	free(v);
}

static const struct files_ops view_ops = {
	.count = kv_count,
	.child = kv_child,
	.name = kv_name,
	.name_of = kv_name_of,
	.find = kv_find,
	.parent = kv_parent,
	.attr = kv_attr,
	.free = kv_free,
};

/* ---- the view ------------------------------------------------------------ */

static bool fits(const struct beside_args *a)
{
	return a->m->counts[0] > 0;
}

static uint64_t numbers(const struct beside_args *a)
{
	return 2 * a->m->n;
}

static int make(struct beside *b, struct files **out, struct error *err)
{
	struct view *v = calloc(1, sizeof *v);
	int r;

	if (!v)
		return error_set(err, -ENOMEM, "out of memory");
	v->files.ops = &view_ops;
	v->b = b;
	r = keys_init(&v->keys, b, err);
	if (r < 0)
		free(v);
	else
		*out = &v->files;
	return r;
}

const struct beside_ops beside_by_key = {
	.name = "by-key",
	.summary = "by-key/KEY/EXT, files by sample as WebDataset groups them",
	.top = "by-key",
	.type = S_IFDIR,
	.fits = fits,
	.numbers = numbers,
	.make = make,
};
