/* SPDX-License-Identifier: BSD-2-Clause */
/* Stored blocks: the parts of a distributed tensor, or the grid of chunks. */
#include "tensor/view.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "tensor/text.h"

/* The grid whose cells are the blocks; NULL: one block, or the parts. */
static const struct grid *block_grid(const struct tensor *t)
{
	const struct layout *l;

	if (t->distributed || !t->nparts)
		return NULL;
	l = atomic_load(&t->parts[0].layout);
	return l && l->kind == LAYOUT_CHUNKED ? l->grid : NULL;
}

uint64_t tensor_blocks(const struct tensor *t, uint64_t counts[RANK_MAX])
{
	const struct grid *g = block_grid(t);
	uint64_t n = 1;

	for (unsigned i = 0; i < t->rank; i++)
		counts[i] = g ? g->chunks[i] : 1;
	if (!t->rank || !t->elements)
		return 0;
	if (t->distributed)
		counts[0] = t->nparts;
	for (unsigned i = 0; i < t->rank; i++)
		n *= counts[i];
	return n;
}

void tensor_block_box(const struct tensor *t, uint64_t block, struct box *out)
{
	const struct grid *g = block_grid(t);

	for (unsigned i = 0; i < t->rank; i++) {
		out->start[i] = 0;
		out->count[i] = t->shape[i];
	}
	if (t->distributed && t->rank) {
		out->start[0] = t->parts[block].begin;
		out->count[0] = t->parts[block].end - t->parts[block].begin;
	} else if (g) {
		grid_origin(g, block, out->start);
		for (unsigned i = 0; i < t->rank; i++)
			out->count[i] = min_u64(g->chunk[i],
						t->shape[i] - out->start[i]);
	}
}

int tensor_rows_flag(struct tensor *t, uint64_t first, uint64_t last,
		     struct pinner *p, char *buf, size_t n, struct error *err)
{
	buf[0] = 0;
	if (!t->flags || !t->flags->text)
		return 0;
	return text_common(t->flags->text, first, last, p, buf, n, err);
}

int tensor_block_flag(struct tensor *t, uint64_t block, struct pinner *p,
		      char *buf, size_t n, struct error *err)
{
	struct box b;

	buf[0] = 0;
	if (!t->rank)
		return 0;
	tensor_block_box(t, block, &b);
	return tensor_rows_flag(t, b.start[0], b.start[0] + b.count[0], p, buf,
				n, err);
}

int tensor_sample_cost(struct tensor *t, unsigned axes, struct sample_cost *out,
		       struct error *err)
{
	const struct layout *l = NULL;
	struct box b;
	int r;

	memset(out, 0, sizeof *out);
	if (!t->elements || t->why_not || t->dtype.kind >= DTYPE_STRING)
		return 0;
	for (unsigned i = 0; i < t->rank; i++) {
		b.start[i] = 0;
		b.count[i] = i < axes ? 1 : t->shape[i];
	}
	out->elements = box_elements(&b, t->rank);
	out->bytes = out->elements * t->dtype.size;
	for (uint32_t p = 0; !l && p < t->nparts; p++) {
		r = tensor_learn(t, p, &l, err);
		if (r < 0 && r != -ENODATA)
			return r;
	}
	if (!l || l->kind != LAYOUT_CHUNKED)
		return 0;
	if (t->distributed && axes == 0)
		b.count[0] = min_u64(b.count[0], l->grid->shape[0]);
	out->chunks = grid_touched(l->grid, &b);
	if (mul_overflows(out->chunks, l->grid->chunk_bytes, &out->decoded))
		out->decoded = UINT64_MAX;
	return 0;
}
