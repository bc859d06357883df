/* SPDX-License-Identifier: BSD-2-Clause */
/* Node numbers of a tensor's directory: which entry of which view a node is. */
/*
 * Node 0 is the directory, nodes 1..n its entries (one for each view).  From number
 * VIEWS_MAX + 1 on, each view that is a directory has a range of numbers for each level
 * of nesting:
 *
 *	    0 | 1 .. n | blocks: level 0 | samples: level 0 | samples: level 1 | ...
 *
 * An entry's number is the first of its level plus its indices in C order, so names,
 * parents and children are found by divisions, whatever the number of samples.  Counts
 * come from the tensor: a directory takes 19 bytes, and one for each view.
 */
#include "views/node.h"

#include <errno.h>

#include "base/number.h"

uint64_t view_numbers(const struct view *v)
{
	uint64_t size = 1, sum = 0;

	for (unsigned l = 0; l < v->levels; l++)
		if (mul_overflows(size, v->ops->count(v, l), &size) ||
		    add_overflows(sum, size, &sum))
			return UINT64_MAX;
	return sum;
}

void view_make(const struct tensor_files *f, unsigned k, uint64_t base,
	       struct view *out)
{
	const struct view_ops *ops = view_table[f->row[k]];

	*out = (struct view){ops, f->tensor, base, k, 0, 0, f->sample_axes};
	out->levels = view_levels(ops, f->tensor, f->sample_axes);
	if (ops->samples)
		out->drop = f->sample_axes;
}

void view_at(const struct tensor_files *f, unsigned k, struct view *out)
{
	uint64_t base = VIEWS_MAX + 1;

	for (unsigned i = 0; i < k; i++) {
		view_make(f, i, base, out);
		base += view_numbers(out);
	}
	view_make(f, k, base, out);
}

/* Set the depth and indices of the node that has number `n` among those of its view.
 * Return 0, or -ENOENT if it is below a file. */
static int view_node_resolve_entry(struct view_node *w, uint64_t n)
{
	const struct view *v = &w->view;
	uint64_t size = v->ops->count(v, 0);

	for (w->depth = 1; n >= size; w->depth++) {
		n -= size;
		size *= v->ops->count(v, w->depth);
	}
	for (unsigned i = w->depth; i-- > 0;) {
		w->at[i] = n % v->ops->count(v, i);
		n /= v->ops->count(v, i);
	}
	for (unsigned i = w->depth; i < v->levels; i++)
		w->at[i] = 0;
	for (unsigned d = 1; v->ops->is_leaf && d < w->depth; d++)
		if (v->ops->is_leaf(v, d, w->at))
			return -ENOENT;
	return 0;
}

int view_node_resolve(const struct tensor_files *f, uint64_t node,
		      struct view_node *out)
{
	uint64_t base = VIEWS_MAX + 1, n;

	if (node >= 1 && node <= f->n) {
		view_at(f, (unsigned)node - 1, &out->view);
		out->depth = 0;
		return 0;
	}
	for (unsigned k = 0; k < f->n && node >= base; k++, base += n) {
		view_make(f, k, base, &out->view);
		n = view_numbers(&out->view);
		if (node - base < n) {
			return view_node_resolve_entry(out, node - base);
		}
	}
	return -ENOENT;
}

uint64_t view_node_number(const struct view *v, unsigned depth,
			  const uint64_t *at)
{
	uint64_t flat = 0, first = v->base, size = 1;

	for (unsigned i = 0; i < depth; i++) {
		uint64_t n = v->ops->count(v, i);

		flat = flat * n + at[i];
		size *= n;
		first += i + 1 < depth ? size : 0;
	}
	return first + flat;
}

uint64_t view_entries(const struct view *v)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < v->levels; i++)
		if (mul_overflows(n, v->ops->count(v, i), &n))
			return UINT64_MAX;
	return n;
}

void view_entry_indices(const struct view *v, uint64_t entry, uint64_t *at)
{
	for (unsigned i = v->levels; i-- > 0;) {
		at[i] = entry % v->ops->count(v, i);
		entry /= v->ops->count(v, i);
	}
}

uint64_t view_entry_node(const struct view *v, uint64_t i)
{
	uint64_t at[RANK_MAX];

	view_entry_indices(v, i, at);
	return view_node_number(v, v->levels, at);
}
