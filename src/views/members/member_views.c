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
#include "views/members/member_views.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "views/members/private.h"

static struct member_views *member_view_self(const struct files *f)
{
	return (struct member_views *)(uintptr_t)f;
}

/* ---- views --------------------------------------------------------------- */

/* Find the row whose top entry has this name. */
static bool member_view_row_named(const struct member_views *b,
				  const char *name, unsigned *row)
{
	for (unsigned i = 0; member_view_table[i]; i++)
		if (b->row[i].shown &&
		    !strcmp(member_view_table[i]->top, name)) {
			*row = i;
			return true;
		}
	return false;
}

/* Make the files of a view, unless they exist.  Returns 0 or -errno. */
static int member_view_make_view(struct member_views *b, unsigned row)
{
	struct files *none = NULL, *made = NULL;
	int r;

	if (atomic_load(&b->row[row].files))
		return 0;
	r = member_view_table[row]->make(b, &made, NULL);
	if (r == 0 &&
	    !atomic_compare_exchange_strong(&b->row[row].files, &none, made))
		made->ops->free(made);
	return r;
}

/* Return the files of the view that a node belongs to, and set *node to the number it
 * has there.  NULL if there is no such view, or it was not asked for yet. */
static struct files *member_view_view_of_node(const struct member_views *b,
					      uint64_t *node, unsigned *row)
{
	for (unsigned i = 0; member_view_table[i]; i++) {
		const struct member_view_row *x = &b->row[i];

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
static uint64_t member_view_outer_node(const struct member_views *b,
				       unsigned row, uint64_t node)
{
	return node & MEMBER_VIEW_MEMBER ? node & ~MEMBER_VIEW_MEMBER
					 : b->row[row].first + node;
}

static bool member_view_is_member(const struct member_views *b, uint64_t node)
{
	return node < b->args.m->n;
}

/* Return the number of listed views before position i of the root; *here is set if a
 * view is at that position.  Views are listed before the first member with a higher
 * name. */
static unsigned listed_before(const struct member_views *b, uint64_t i,
			      bool *here)
{
	unsigned k = 0;

	while (k < b->n_listed && b->listed[k].before + k < i)
		k++;
	*here = k < b->n_listed && b->listed[k].before + k == i;
	return k;
}

/* ---- directories --------------------------------------------------------- */

static struct files *member_view_members(const struct files *f)
{
	return member_view_self(f)->args.members;
}

static uint64_t member_view_files_count(const struct files *f, uint64_t dir)
{
	struct member_views *b = member_view_self(f);
	struct files *m = member_view_members(f), *v;
	unsigned row;

	if (dir == 0)
		return m->ops->count(m, 0) + b->n_listed;
	if (member_view_is_member(b, dir))
		return m->ops->count(m, dir);
	v = member_view_view_of_node(b, &dir, &row);
	return v ? v->ops->count(v, dir) : 0;
}

static bool member_view_files_endless(const struct files *f, uint64_t dir)
{
	unsigned row;
	struct files *v =
		dir && !member_view_is_member(member_view_self(f), dir)
			? member_view_view_of_node(member_view_self(f), &dir,
						   &row)
			: NULL;

	return v && v->ops->endless && v->ops->endless(v, dir);
}

static uint64_t member_view_files_child(const struct files *f, uint64_t dir,
					uint64_t i, uint32_t *type)
{
	struct member_views *b = member_view_self(f);
	struct files *m = member_view_members(f), *v;
	unsigned row, k;
	bool here;

	if (dir == 0) {
		k = listed_before(b, i, &here);
		if (!here)
			return m->ops->child(m, 0, i - k, type);
		row = b->listed[k].row;
		*type = member_view_table[row]->type;
		return member_view_make_view(b, row) == 0 ? b->row[row].first
							  : 0;
	}
	if (member_view_is_member(b, dir))
		return m->ops->child(m, dir, i, type);
	v = member_view_view_of_node(b, &dir, &row);
	*type = S_IFREG;
	return v ? member_view_outer_node(b, row,
					  v->ops->child(v, dir, i, type))
		 : 0;
}

static int member_view_copy_name(const char *name, char *buf, size_t n)
{
	return snprintf(buf, n, "%s", name) < (int)n ? 0 : -ENAMETOOLONG;
}

static int member_view_files_name(const struct files *f, uint64_t dir,
				  uint64_t i, char *buf, size_t n)
{
	struct member_views *b = member_view_self(f);
	struct files *m = member_view_members(f), *v;
	unsigned row, k;
	bool here;

	if (dir == 0) {
		k = listed_before(b, i, &here);
		return here ? member_view_copy_name(
				      member_view_table[b->listed[k].row]->top,
				      buf, n)
			    : m->ops->name(m, 0, i - k, buf, n);
	}
	if (member_view_is_member(b, dir))
		return m->ops->name(m, dir, i, buf, n);
	v = member_view_view_of_node(b, &dir, &row);
	return v ? v->ops->name(v, dir, i, buf, n) : -ENOENT;
}

static int member_view_files_name_of(const struct files *f, uint64_t node,
				     char *buf, size_t n)
{
	const struct member_views *b = member_view_self(f);
	const struct members *m = b->args.m;
	struct files *v;
	unsigned row;

	if (member_view_is_member(b, node))
		return member_view_copy_name(member_name(m, &m->at[node]), buf,
					     n);
	v = member_view_view_of_node(b, &node, &row);
	if (!v)
		return -ENOENT;
	return node ? v->ops->name_of(v, node, buf, n)
		    : member_view_copy_name(member_view_table[row]->top, buf,
					    n);
}

static int member_view_files_find(const struct files *f, uint64_t dir,
				  const char *name, uint64_t *node)
{
	struct member_views *b = member_view_self(f);
	struct files *m = member_view_members(f), *v;
	unsigned row;
	int r;

	if (member_view_is_member(b, dir)) {
		r = m->ops->find(m, dir, name, node);
		if (r != -ENOENT || dir ||
		    !member_view_row_named(b, name, &row))
			return r;
		*node = b->row[row].first;
		return member_view_make_view(b, row);
	}
	v = member_view_view_of_node(b, &dir, &row);
	if (!v)
		return -ENOENT;
	r = v->ops->find(v, dir, name, node);
	if (r == 0)
		*node = member_view_outer_node(b, row, *node);
	return r;
}

static int member_view_files_parent(const struct files *f, uint64_t node,
				    uint64_t *dir)
{
	const struct member_views *b = member_view_self(f);
	struct files *m = member_view_members(f), *v;
	unsigned row;
	int r;

	if (member_view_is_member(b, node))
		return m->ops->parent(m, node, dir);
	v = member_view_view_of_node(b, &node, &row);
	if (!v)
		return -ENOENT;
	if (node == 0) {
		*dir = 0;
		return 0;
	}
	r = v->ops->parent(v, node, dir);
	if (r == 0)
		*dir = member_view_outer_node(b, row, *dir);
	return r;
}

/* ---- files --------------------------------------------------------------- */

/* Return the files that have a node, members or a view, and set *node to the number it
 * has there.  NULL if there are none. */
static struct files *member_view_owner(const struct files *f, uint64_t *node)
{
	unsigned row;

	return member_view_is_member(member_view_self(f), *node)
		       ? member_view_members(f)
		       : member_view_view_of_node(member_view_self(f), node,
						  &row);
}

static bool member_view_files_attr_is_slow(const struct files *f, uint64_t node)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->attr_is_slow && v->ops->attr_is_slow(v, node);
}

static int member_view_files_attr(struct files *f, uint64_t node,
				  struct pinner *p, struct attr *out,
				  struct error *err)
{
	struct member_views *b = member_view_self(f);
	struct files *v;
	bool root = node == 0;
	int r;

	v = member_view_owner(f, &node);
	r = v ? v->ops->attr(v, node, p, out, err) : -ENOENT;
	if (root && r == 0)
		out->size += b->n_listed;
	return r;
}

static int member_view_files_hold(struct files *f, uint64_t node, int64_t n)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->hold ? v->ops->hold(v, node, n) : 0;
}

static int member_view_files_prepare(struct files *f, uint64_t node,
				     uint64_t off, uint64_t len,
				     struct error *err)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->prepare ? v->ops->prepare(v, node, off, len, err)
				    : 0;
}

static int member_view_files_map(const struct files *f, uint64_t node,
				 uint64_t off, struct plan *p,
				 struct error *err)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->map ? v->ops->map(v, node, off, p, err)
				: error_set(err, -EIO, "there is no such file");
}

static ssize_t member_view_files_xattr(struct files *f, uint64_t node,
				       const char *key, struct pinner *p,
				       char *buf, size_t n)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->xattr ? v->ops->xattr(v, node, key, p, buf, n)
				  : -ENODATA;
}

static const char *member_view_files_xattr_keys(const struct files *f,
						uint64_t node, size_t *len)
{
	struct files *v = member_view_owner(f, &node);

	*len = 0;
	return v && v->ops->xattr_keys ? v->ops->xattr_keys(v, node, len)
				       : NULL;
}

static const char *member_view_files_link(const struct files *f, uint64_t node)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->link ? v->ops->link(v, node) : NULL;
}

static ssize_t member_view_files_stored_xattr(const struct files *f,
					      uint64_t node, const char *name,
					      char *buf, size_t n)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->stored_xattr
		       ? v->ops->stored_xattr(v, node, name, buf, n)
		       : -ENODATA;
}

static ssize_t member_view_files_stored_xattr_list(const struct files *f,
						   uint64_t node, char *buf,
						   size_t n)
{
	struct files *v = member_view_owner(f, &node);

	return v && v->ops->stored_xattr_list
		       ? v->ops->stored_xattr_list(v, node, buf, n)
		       : 0;
}

static void member_view_files_free(struct files *f)
{
	struct member_views *b = member_view_self(f);

	for (unsigned i = 0; member_view_table[i]; i++) {
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

static const struct files_ops member_view_files_ops = {
	.count = member_view_files_count,
	.endless = member_view_files_endless,
	.child = member_view_files_child,
	.name = member_view_files_name,
	.name_of = member_view_files_name_of,
	.find = member_view_files_find,
	.parent = member_view_files_parent,
	.attr_is_slow = member_view_files_attr_is_slow,
	.attr = member_view_files_attr,
	.hold = member_view_files_hold,
	.sample = member_view_sample,
	.sample_node = member_view_sample_node,
	.prepare = member_view_files_prepare,
	.map = member_view_files_map,
	.xattr = member_view_files_xattr,
	.xattr_keys = member_view_files_xattr_keys,
	.link = member_view_files_link,
	.stored_xattr = member_view_files_stored_xattr,
	.stored_xattr_list = member_view_files_stored_xattr_list,
	.free = member_view_files_free,
};

/* ---- making -------------------------------------------------------------- */

/* Add a view to the listed ones, which come before the first member with a higher name. */
static void member_view_list_row(struct member_views *b, unsigned row)
{
	const struct members *m = b->args.m;
	const struct member_record *root = &m->at[b->args.root];
	struct bisect at = bisect_in(0, root->size);
	unsigned k = b->n_listed++;

	while (bisect_next(&at))
		bisect_answer(
			&at, strcmp(member_name(m, &m->at[root->data + at.mid]),
				    member_view_table[row]->top) >= 0);
	for (; k && strcmp(member_view_table[b->listed[k - 1].row]->top,
			   member_view_table[row]->top) > 0;
	     k--)
		b->listed[k] = b->listed[k - 1];
	b->listed[k] = (struct member_view_listed){row, at.lo};
}

static void member_view_add_row(struct member_views *b, unsigned row,
				uint64_t *next)
{
	const struct member_view_ops *ops = member_view_table[row];
	struct member_view_row *x = &b->row[row];
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
		member_view_list_row(b, row);
}

int member_views_new(struct files **out, const struct member_views_args *a,
		     struct error *err)
{
	struct member_views *b = calloc(1, sizeof *b);
	char *source = b ? strdup(a->source ? a->source : "union") : NULL;
	uint64_t next = a->m->n;

	*out = NULL;
	if (!source) {
		free(b);
		a->members->ops->free(a->members);
		return error_no_memory(err, "the views of an archive");
	}
	b->files.ops = &member_view_files_ops;
	b->args = *a;
	b->args.source = source;
	for (unsigned i = 0; member_view_table[i]; i++)
		member_view_add_row(b, i, &next);
	*out = &b->files;
	return 0;
}

bool member_views_are(const struct files *f)
{
	return f->ops == &member_view_files_ops;
}

bool member_views_is_view(const struct files *f, uint64_t node)
{
	return member_views_are(f) &&
	       !member_view_is_member(member_view_self(f), node);
}

void member_views_hide(struct files *f, const uint64_t *records, size_t n)
{
	struct member_views *b = member_view_self(f);

	if (!member_views_are(f))
		return;
	b->hidden = records;
	b->n_hidden = n;
}
