/* SPDX-License-Identifier: BSD-2-Clause */
/* Views beside members: finds out which view a node belongs to, and passes calls on. */

/*
 * Members keep their numbers; each view has a range of numbers behind them, the first
 * of which is the view itself:
 *
 *	0 .. n-1 members | view 0: 0, 1, ... | view 1: 0, 1, ... | ...
 *
 * A view is made by the first caller that asks for it, without a lock; if two threads
 * make it at once, one of the results is kept.
 */
#include "views/members/beside.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "views/members/private.h"

static struct beside *beside_self(const struct files *f)
{
	return (struct beside *)(uintptr_t)f;
}

/* ---- views --------------------------------------------------------------- */

/* Find the row whose top entry has this name. */
static bool beside_row_named(const struct beside *b, const char *name,
			     unsigned *row)
{
	for (unsigned i = 0; beside_table[i]; i++)
		if (b->row[i].shown && !strcmp(beside_table[i]->top, name)) {
			*row = i;
			return true;
		}
	return false;
}

/* Make the files of a view, unless they exist.  Returns 0 or -errno. */
static int beside_make_view(struct beside *b, unsigned row)
{
	struct files *none = NULL, *made = NULL;
	int r;

	if (atomic_load(&b->row[row].files))
		return 0;
	r = beside_table[row]->make(b, &made, NULL);
	if (r == 0 &&
	    !atomic_compare_exchange_strong(&b->row[row].files, &none, made))
		made->ops->free(made);
	return r;
}

/* Return the files of the view that a node belongs to, and set *node to the number it
 * has there.  NULL if there is no such view, or it was not asked for yet. */
static struct files *beside_view_of_node(const struct beside *b, uint64_t *node,
					 unsigned *row)
{
	for (unsigned i = 0; beside_table[i]; i++) {
		const struct beside_row *x = &b->row[i];

		if (!x->shown || *node < x->first ||
		    *node - x->first > x->numbers)
			continue;
		*node -= x->first;
		*row = i;
		return atomic_load(&x->files);
	}
	return NULL;
}

/* Return the number among all nodes of a view's node. */
static uint64_t beside_outer_node(const struct beside *b, unsigned row,
				  uint64_t node)
{
	return node & BESIDE_MEMBER ? node & ~BESIDE_MEMBER
				    : b->row[row].first + node;
}

static bool beside_is_member(const struct beside *b, uint64_t node)
{
	return node < b->args.m->n;
}

/* Return the number of listed views before position i of the root; *here is set if a
 * view is at that position.  Views are listed before the first member with a higher
 * name. */
static unsigned listed_before(const struct beside *b, uint64_t i, bool *here)
{
	unsigned k = 0;

	while (k < b->n_listed && b->listed[k].before + k < i)
		k++;
	*here = k < b->n_listed && b->listed[k].before + k == i;
	return k;
}

/* ---- directories --------------------------------------------------------- */

static struct files *beside_members(const struct files *f)
{
	return beside_self(f)->args.members;
}

static uint64_t beside_files_count(const struct files *f, uint64_t dir)
{
	struct beside *b = beside_self(f);
	struct files *m = beside_members(f), *v;
	unsigned row;

	if (dir == 0)
		return m->ops->count(m, 0) + b->n_listed;
	if (beside_is_member(b, dir))
		return m->ops->count(m, dir);
	v = beside_view_of_node(b, &dir, &row);
	return v ? v->ops->count(v, dir) : 0;
}

static bool beside_files_endless(const struct files *f, uint64_t dir)
{
	unsigned row;
	struct files *v =
		dir && !beside_is_member(beside_self(f), dir)
			? beside_view_of_node(beside_self(f), &dir, &row)
			: NULL;

	return v && v->ops->endless && v->ops->endless(v, dir);
}

static uint64_t beside_files_child(const struct files *f, uint64_t dir,
				   uint64_t i, uint32_t *type)
{
	struct beside *b = beside_self(f);
	struct files *m = beside_members(f), *v;
	unsigned row, k;
	bool here;

	if (dir == 0) {
		k = listed_before(b, i, &here);
		if (!here)
			return m->ops->child(m, 0, i - k, type);
		row = b->listed[k].row;
		*type = beside_table[row]->type;
		return beside_make_view(b, row) == 0 ? b->row[row].first : 0;
	}
	if (beside_is_member(b, dir))
		return m->ops->child(m, dir, i, type);
	v = beside_view_of_node(b, &dir, &row);
	*type = S_IFREG;
	return v ? beside_outer_node(b, row, v->ops->child(v, dir, i, type))
		 : 0;
}

static int beside_copy_name(const char *name, char *buf, size_t n)
{
	return snprintf(buf, n, "%s", name) < (int)n ? 0 : -ENAMETOOLONG;
}

static int beside_files_name(const struct files *f, uint64_t dir, uint64_t i,
			     char *buf, size_t n)
{
	struct beside *b = beside_self(f);
	struct files *m = beside_members(f), *v;
	unsigned row, k;
	bool here;

	if (dir == 0) {
		k = listed_before(b, i, &here);
		return here ? beside_copy_name(
				      beside_table[b->listed[k].row]->top, buf,
				      n)
			    : m->ops->name(m, 0, i - k, buf, n);
	}
	if (beside_is_member(b, dir))
		return m->ops->name(m, dir, i, buf, n);
	v = beside_view_of_node(b, &dir, &row);
	return v ? v->ops->name(v, dir, i, buf, n) : -ENOENT;
}

static int beside_files_name_of(const struct files *f, uint64_t node, char *buf,
				size_t n)
{
	const struct beside *b = beside_self(f);
	const struct members *m = b->args.m;
	struct files *v;
	unsigned row;

	if (beside_is_member(b, node))
		return beside_copy_name(member_name(m, &m->at[node]), buf, n);
	v = beside_view_of_node(b, &node, &row);
	if (!v)
		return -ENOENT;
	return node ? v->ops->name_of(v, node, buf, n)
		    : beside_copy_name(beside_table[row]->top, buf, n);
}

static int beside_files_find(const struct files *f, uint64_t dir,
			     const char *name, uint64_t *node)
{
	struct beside *b = beside_self(f);
	struct files *m = beside_members(f), *v;
	unsigned row;
	int r;

	if (beside_is_member(b, dir)) {
		r = m->ops->find(m, dir, name, node);
		if (r != -ENOENT || dir || !beside_row_named(b, name, &row))
			return r;
		*node = b->row[row].first;
		return beside_make_view(b, row);
	}
	v = beside_view_of_node(b, &dir, &row);
	if (!v)
		return -ENOENT;
	r = v->ops->find(v, dir, name, node);
	if (r == 0)
		*node = beside_outer_node(b, row, *node);
	return r;
}

static int beside_files_parent(const struct files *f, uint64_t node,
			       uint64_t *dir)
{
	const struct beside *b = beside_self(f);
	struct files *m = beside_members(f), *v;
	unsigned row;
	int r;

	if (beside_is_member(b, node))
		return m->ops->parent(m, node, dir);
	v = beside_view_of_node(b, &node, &row);
	if (!v)
		return -ENOENT;
	if (node == 0) {
		*dir = 0;
		return 0;
	}
	r = v->ops->parent(v, node, dir);
	if (r == 0)
		*dir = beside_outer_node(b, row, *dir);
	return r;
}

/* ---- files --------------------------------------------------------------- */

/* Return the files that have a node, members or a view, and set *node to the number it
 * has there.  NULL if there are none. */
static struct files *beside_owner(const struct files *f, uint64_t *node)
{
	unsigned row;

	return beside_is_member(beside_self(f), *node)
		       ? beside_members(f)
		       : beside_view_of_node(beside_self(f), node, &row);
}

static bool beside_files_attr_is_slow(const struct files *f, uint64_t node)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->attr_is_slow && v->ops->attr_is_slow(v, node);
}

static int beside_files_attr(struct files *f, uint64_t node, struct pinner *p,
			     struct attr *out, struct error *err)
{
	struct beside *b = beside_self(f);
	struct files *v;
	bool root = node == 0;
	int r;

	v = beside_owner(f, &node);
	r = v ? v->ops->attr(v, node, p, out, err) : -ENOENT;
	if (root && r == 0)
		out->size += b->n_listed;
	return r;
}

static int beside_files_hold(struct files *f, uint64_t node, int64_t n)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->hold ? v->ops->hold(v, node, n) : 0;
}

static int beside_files_prepare(struct files *f, uint64_t node, uint64_t off,
				uint64_t len, struct error *err)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->prepare ? v->ops->prepare(v, node, off, len, err)
				    : 0;
}

static int beside_files_map(const struct files *f, uint64_t node, uint64_t off,
			    struct plan *p, struct error *err)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->map ? v->ops->map(v, node, off, p, err)
				: error_set(err, -EIO, "there is no such file");
}

static ssize_t beside_files_xattr(struct files *f, uint64_t node,
				  const char *key, struct pinner *p, char *buf,
				  size_t n)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->xattr ? v->ops->xattr(v, node, key, p, buf, n)
				  : -ENODATA;
}

static const char *beside_files_xattr_keys(const struct files *f, uint64_t node,
					   size_t *len)
{
	struct files *v = beside_owner(f, &node);

	*len = 0;
	return v && v->ops->xattr_keys ? v->ops->xattr_keys(v, node, len)
				       : NULL;
}

static const char *beside_files_link(const struct files *f, uint64_t node)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->link ? v->ops->link(v, node) : NULL;
}

static ssize_t beside_files_stored_xattr(const struct files *f, uint64_t node,
					 const char *name, char *buf, size_t n)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->stored_xattr
		       ? v->ops->stored_xattr(v, node, name, buf, n)
		       : -ENODATA;
}

static ssize_t beside_files_stored_xattr_list(const struct files *f,
					      uint64_t node, char *buf,
					      size_t n)
{
	struct files *v = beside_owner(f, &node);

	return v && v->ops->stored_xattr_list
		       ? v->ops->stored_xattr_list(v, node, buf, n)
		       : 0;
}

static void beside_files_free(struct files *f)
{
	struct beside *b = beside_self(f);

	for (unsigned i = 0; beside_table[i]; i++) {
		struct files *v = atomic_load(&b->row[i].files);

		if (v)
			v->ops->free(v);
	}
	b->args.members->ops->free(b->args.members);
	free((char *)(uintptr_t)b->args.source);
	free(atomic_load(&b->list));
	free(atomic_load(&b->places));
	free(b);
}

static const struct files_ops beside_files_ops = {
	.count = beside_files_count,
	.endless = beside_files_endless,
	.child = beside_files_child,
	.name = beside_files_name,
	.name_of = beside_files_name_of,
	.find = beside_files_find,
	.parent = beside_files_parent,
	.attr_is_slow = beside_files_attr_is_slow,
	.attr = beside_files_attr,
	.hold = beside_files_hold,
	.sample = beside_sample,
	.sample_node = beside_sample_node,
	.prepare = beside_files_prepare,
	.map = beside_files_map,
	.xattr = beside_files_xattr,
	.xattr_keys = beside_files_xattr_keys,
	.link = beside_files_link,
	.stored_xattr = beside_files_stored_xattr,
	.stored_xattr_list = beside_files_stored_xattr_list,
	.free = beside_files_free,
};

/* ---- making -------------------------------------------------------------- */

/* Add a view to the listed ones, which come before the first member with a higher name. */
static void beside_list_row(struct beside *b, unsigned row)
{
	const struct members *m = b->args.m;
	const struct member_record *root = &m->at[b->args.root];
	struct bisect at = bisect_in(0, root->size);
	unsigned k = b->n_listed++;

	while (bisect_next(&at))
		bisect_answer(
			&at, strcmp(member_name(m, &m->at[root->data + at.mid]),
				    beside_table[row]->top) >= 0);
	for (; k && strcmp(beside_table[b->listed[k - 1].row]->top,
			   beside_table[row]->top) > 0;
	     k--)
		b->listed[k] = b->listed[k - 1];
	b->listed[k] = (struct beside_listed){row, at.lo};
}

static void beside_add_row(struct beside *b, unsigned row, uint64_t *next)
{
	const struct beside_ops *ops = beside_table[row];
	struct beside_row *x = &b->row[row];
	uint64_t taken, after;

	if (!ops->fits(&b->args) ||
	    members_find(b->args.m, b->args.root, ops->top, &taken) == 0)
		return;
	x->first = *next;
	x->numbers = ops->numbers(&b->args);
	/* A graft has 2^32 node numbers. */
	if (add_overflows(*next, x->numbers, &after) || after >= UINT32_MAX)
		return;
	*next = after + 1;
	x->shown = true;
	if (b->args.options.listed >> row & 1)
		beside_list_row(b, row);
}

int beside_new(struct files **out, const struct beside_args *a,
	       struct error *err)
{
	struct beside *b = calloc(1, sizeof *b);
	char *source = b ? strdup(a->source ? a->source : "union") : NULL;
	uint64_t next = a->m->n;

	*out = NULL;
	if (!source) {
		free(b);
		a->members->ops->free(a->members);
		return error_no_memory(err, "the views of an archive");
	}
	b->files.ops = &beside_files_ops;
	b->args = *a;
	b->args.source = source;
	for (unsigned i = 0; beside_table[i]; i++)
		beside_add_row(b, i, &next);
	*out = &b->files;
	return 0;
}

bool beside_are(const struct files *f)
{
	return f->ops == &beside_files_ops;
}

bool beside_is_view(const struct files *f, uint64_t node)
{
	return beside_are(f) && !beside_is_member(beside_self(f), node);
}

void beside_hide(struct files *f, const uint64_t *records, size_t n)
{
	struct beside *b = beside_self(f);

	if (!beside_are(f))
		return;
	b->hidden = records;
	b->n_hidden = n;
}
