/* SPDX-License-Identifier: BSD-2-Clause */
/* epochs/E/rank-R-of-W/: files in the order of a rank (tree/epochs.h). */

/*
 * The number of a sample is the place of its path in the sorted list of all files
 * (files.txt).  The entries are the files themselves, under their positions.  Nodes:
 *
 *	0 epochs/ | 1 + number of a directory | 1 + LOOKUPS_NUMBERS + number: its order.txt
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lookups.h"
#include "tree/epochs.h"
#include "views/members/table.h"
#include "views/members/text.h"

#define ORDER "order.txt"

struct view {
	struct files files; /* first member */
	/* The texts order.txt; each has the number of its directory. */
	struct member_view_text text;
	struct member_views *b;
	const struct member_view_list *list;
	struct epochs *epochs; /* NULL: there are no samples, or too many */
};

static struct view *rank_view_self(const struct files *f)
{
	return (struct view *)(uintptr_t)f;
}

static bool rank_view_is_order(uint64_t node)
{
	return node > LOOKUPS_NUMBERS;
}

static uint32_t rank_view_number(uint64_t node)
{
	if (node == 0)
		return EPOCHS_TOP;
	return (uint32_t)(rank_view_is_order(node) ? node - 1 - LOOKUPS_NUMBERS
						   : node - 1);
}

static uint64_t rank_view_node(uint32_t number)
{
	return number == EPOCHS_TOP ? 0 : 1 + (uint64_t)number;
}

static const char *rank_view_suffix(const struct view *v, uint64_t sample)
{
	const struct members *m = member_views_args(v->b)->m;

	return member_view_extension(
		member_name(m, &m->at[v->list->at[sample]]));
}

static uint64_t rank_view_member_node(const struct view *v, uint64_t sample)
{
	return MEMBER_VIEW_MEMBER | member_view_node(v->b, v->list->at[sample]);
}

/* ---- directories --------------------------------------------------------- */

static uint64_t rank_view_count(const struct files *f, uint64_t dir)
{
	const struct view *v = rank_view_self(f);

	return v->epochs && !rank_view_is_order(dir)
		       ? epochs_count(v->epochs, rank_view_number(dir))
		       : 0;
}

static bool rank_view_endless(const struct files *f, uint64_t dir)
{
	const struct view *v = rank_view_self(f);

	return v->epochs && !rank_view_is_order(dir) &&
	       epochs_endless(v->epochs, rank_view_number(dir));
}

static uint64_t rank_view_child(const struct files *f, uint64_t dir, uint64_t i,
				uint32_t *type)
{
	const struct view *v = rank_view_self(f);
	uint64_t sample;

	*type = S_IFREG;
	if (epochs_entry(v->epochs, rank_view_number(dir), i, "", &sample, NULL,
			 0) < 0)
		return 0;
	return rank_view_member_node(v, sample);
}

static int rank_view_name(const struct files *f, uint64_t dir, uint64_t i,
			  char *buf, size_t n)
{
	const struct view *v = rank_view_self(f);
	uint64_t sample;
	size_t len;
	int r = epochs_entry(v->epochs, rank_view_number(dir), i, "", &sample,
			     buf, n);

	if (r < 0)
		return r;
	len = strlen(buf);
	return snprintf(buf + len, n - len, "%s", rank_view_suffix(v, sample)) <
			       (int)(n - len)
		       ? 0
		       : -ENAMETOOLONG;
}

static int rank_view_name_of(const struct files *f, uint64_t node, char *buf,
			     size_t n)
{
	const struct view *v = rank_view_self(f);

	if (!rank_view_is_order(node))
		return v->epochs ? epochs_name(v->epochs,
					       rank_view_number(node), buf, n)
				 : -ENOENT;
	snprintf(buf, n, ORDER);
	return 0;
}

static int rank_view_find(const struct files *f, uint64_t dir, const char *name,
			  uint64_t *node)
{
	const struct view *v = rank_view_self(f);
	struct epochs_entry x;
	int r = v->epochs && !rank_view_is_order(dir)
			? epochs_find(v->epochs, rank_view_number(dir), name,
				      NULL, &x)
			: -ENOENT;

	if (r < 0)
		return r;
	if (x.kind == EPOCHS_SAMPLE) {
		if (strcmp(name + strspn(name, "0123456789"),
			   rank_view_suffix(v, x.number)) != 0)
			return -ENOENT;
		*node = rank_view_member_node(v, x.number);
		return 0;
	}
	*node = 1 + x.number + (x.kind == EPOCHS_ORDER ? LOOKUPS_NUMBERS : 0);
	return 0;
}

static int rank_view_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	const struct view *v = rank_view_self(f);
	uint32_t up;
	int r = v->epochs
			? epochs_parent(v->epochs, rank_view_number(node), &up)
			: -ENOENT;

	if (r == 0)
		*dir = rank_view_is_order(node)
			       ? rank_view_node(rank_view_number(node))
			       : rank_view_node(up);
	return r;
}

/* ---- files --------------------------------------------------------------- */

static bool rank_view_attr_is_slow(const struct files *f, uint64_t node)
{
	(void)f;
	return rank_view_is_order(node);
}

static int rank_view_attr(struct files *f, uint64_t node, struct pinner *p,
			  struct attr *out, struct error *err)
{
	struct view *v = rank_view_self(f);
	uint64_t dir;

	if (node && rank_view_parent(f, node, &dir) < 0)
		return -ENOENT;
	member_view_attr(v->b, rank_view_is_order(node) ? S_IFREG : S_IFDIR,
			 out);
	if (node)
		out->generation =
			epochs_generation(v->epochs, rank_view_number(node));
	return rank_view_is_order(node)
		       ? member_view_text_size(&v->text, rank_view_number(node),
					       p, &out->size, err)
		       : 0;
}

static int rank_view_hold(struct files *f, uint64_t node, int64_t n)
{
	const struct view *v = rank_view_self(f);

	return node && v->epochs
		       ? epochs_hold(v->epochs, rank_view_number(node), n)
		       : 0;
}

static int rank_view_map(const struct files *f, uint64_t node, uint64_t off,
			 struct plan *p, struct error *err)
{
	if (!rank_view_is_order(node))
		return error_set(err, -EISDIR,
				 "a directory cannot be read as a file");
	member_view_text_map(&rank_view_self(f)->text, rank_view_number(node),
			     off, p);
	return 0;
}

static void rank_view_free(struct files *f)
{
	struct view *v = rank_view_self(f);

	epochs_free(v->epochs);
	free(v);
}

static const struct files_ops view_ops = {
	.count = rank_view_count,
	.endless = rank_view_endless,
	.child = rank_view_child,
	.name = rank_view_name,
	.name_of = rank_view_name_of,
	.find = rank_view_find,
	.parent = rank_view_parent,
	.attr_is_slow = rank_view_attr_is_slow,
	.attr = rank_view_attr,
	.hold = rank_view_hold,
	.map = rank_view_map,
	.free = rank_view_free,
};

/* ---- order.txt ----------------------------------------------------------- */

static const struct view *rank_view_of_text(const struct member_view_text *t)
{
	return (const struct view *)((const char *)t -
				     offsetof(struct view, text));
}

static uint64_t order_count(const struct member_view_text *t, uint32_t text)
{
	return epochs_count(rank_view_of_text(t)->epochs, text);
}

static int order_line(const struct member_view_text *t, uint32_t text,
		      uint64_t i, struct member_view_path *path, FILE *out,
		      struct error *err)
{
	const struct view *v = rank_view_of_text(t);
	uint64_t sample;
	int r = epochs_entry(v->epochs, text, i, "", &sample, NULL, 0);

	if (r < 0)
		return error_errno(err, r,
				   "cannot make the order of the epoch");
	return member_view_put_path(v->b, v->list->at[sample], path, out, err);
}

static void order_describe(const struct member_view_text *t, uint32_t text,
			   char *buf, size_t n)
{
	(void)text;
	snprintf(buf, n, "%s: epochs " ORDER,
		 member_views_args(rank_view_of_text(t)->b)->source);
}

static const struct member_view_text_ops order_ops = {
	.count = order_count,
	.line = order_line,
	.describe = order_describe,
};

/* ---- the view ------------------------------------------------------------ */

static bool rank_view_fits(const struct member_views_args *a)
{
	return a->m->counts[0] > 0;
}

static uint64_t rank_view_numbers(const struct member_views_args *a)
{
	(void)a;
	return 2 * (uint64_t)LOOKUPS_NUMBERS;
}

static int rank_view_make(struct member_views *b, struct files **out,
			  struct error *err)
{
	struct view *v = calloc(1, sizeof *v);
	int r;

	if (!v)
		return error_no_memory(err, "the view epochs/");
	v->files.ops = &view_ops;
	v->b = b;
	member_view_text_init(&v->text, &order_ops);
	r = member_view_list(b, &v->list, err);
	if (r == 0 && v->list->n && v->list->n <= EPOCHS_SAMPLES_MAX &&
	    !(v->epochs = epochs_new(v->list->n)))
		r = error_no_memory(err, "the orders of epochs/");
	if (r < 0)
		free(v);
	else
		*out = &v->files;
	return r;
}

const struct member_view_ops member_view_epochs = {
	.name = "epochs",
	.summary = "epochs/E/rank-R-of-W/, files in the order of a rank",
	.top = "epochs",
	.type = S_IFDIR,
	.fits = rank_view_fits,
	.numbers = rank_view_numbers,
	.make = rank_view_make,
};
