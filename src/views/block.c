/* SPDX-License-Identifier: BSD-2-Clause */
/* Stored blocks: those of the mosaic, or the grid of chunks. */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "tensor/text.h"
#include "views/view.h"

/* Return the grid whose cells are the blocks; NULL: the tensor is one block. */
static const struct grid *block_grid(const struct tensor *t)
{
	const struct layout *l =
		t->nparts ? atomic_load(&t->parts[0].layout) : NULL;

	return l && l->kind == LAYOUT_CHUNKED ? l->grid : NULL;
}

uint64_t tensor_blocks(const struct tensor *t)
{
	const struct grid *g;

	if (!t->rank || !t->elements)
		return 0;
	if (t->mosaic)
		return mosaic_blocks(t->mosaic);
	g = block_grid(t);
	return g ? g->count : 1;
}

bool tensor_divides(const struct tensor *t, unsigned axis)
{
	const struct grid *g = t->mosaic ? NULL : block_grid(t);
	bool any = false;

	for (unsigned i = 0; i < t->rank; i++) {
		bool divides = t->mosaic ? mosaic_divides(t->mosaic, i)
					 : g && g->chunks[i] > 1;

		if (i == axis && divides)
			return true;
		any = any || divides;
	}
	/* If no axis is divided, the name of the only block has the first axis. */
	return axis == 0 && !any;
}

void tensor_block_box(const struct tensor *t, uint64_t block, struct box *out)
{
	const struct grid *g;

	if (t->mosaic) {
		mosaic_block(t->mosaic, (uint32_t)block, out);
		return;
	}
	tensor_whole_box(t, out);
	g = block_grid(t);
	if (!g)
		return;
	grid_origin(g, block, out->start);
	for (unsigned i = 0; i < t->rank; i++)
		out->count[i] =
			min_u64(g->chunk[i], t->shape[i] - out->start[i]);
}

int tensor_block_find(const struct tensor *t, const struct box *b,
		      uint64_t *block)
{
	const struct grid *g;
	struct box have;
	uint64_t k = 0;
	uint32_t n;

	if (!tensor_blocks(t))
		return -ENOENT;
	if (t->mosaic) {
		if (mosaic_block_find(t->mosaic, b, &n) < 0)
			return -ENOENT;
		*block = n;
		return 0;
	}
	g = block_grid(t);
	for (unsigned i = 0; g && i < t->rank; i++) {
		if (b->start[i] >= t->shape[i])
			return -ENOENT;
		k = k * g->chunks[i] + b->start[i] / g->chunk[i];
	}
	tensor_block_box(t, k, &have);
	for (unsigned i = 0; i < t->rank; i++)
		if (b->start[i] != have.start[i] ||
		    b->count[i] != have.count[i])
			return -ENOENT;
	*block = k;
	return 0;
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

/* ---- what a sample costs ------------------------------------------------- */

/* Most pieces of a sample that are counted; the others are estimated from these. */
#define PIECES_MAX 65536
/* Most parts that are opened to see how they are stored. */
#define PARTS_MAX 16

/* Extend `a` to the smallest box around `a` and `b`. */
static void box_join(struct box *a, const struct box *b, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++) {
		uint64_t start = min_u64(a->start[i], b->start[i]);
		uint64_t end = max_u64(a->start[i] + a->count[i],
				       b->start[i] + b->count[i]);

		a->start[i] = start;
		a->count[i] = end - start;
	}
}

struct touched {
	uint64_t chunks, bytes; /* saturating */
	unsigned pieces;        /* pieces counted */
	unsigned opened;        /* parts opened to count them */
};

/* Set *out to a layout that is typical of the parts: that of a part that is open, else
 * of one of the first parts, which is opened.  NULL: no layout is known. */
static int typical_layout(struct tensor *t, const struct layout **out,
			  struct touched *x, struct error *err)
{
	int r;

	*out = NULL;
	for (uint32_t p = 0; p < t->nparts && atomic_load(&t->learnt); p++) {
		*out = atomic_load(&t->parts[p].layout);
		if (*out && (*out)->kind != LAYOUT_ABSENT)
			return 0;
	}
	for (uint32_t p = 0; p < t->nparts && x->opened < PARTS_MAX; p++) {
		x->opened++;
		r = tensor_learn(t, p, out, err);
		if (r < 0 && r != -ENODATA)
			return r;
		if (r == 0 && (*out)->kind != LAYOUT_ABSENT)
			return 0;
	}
	*out = NULL;
	return 0;
}

static void touched_add_mosaic(struct tensor *t, const struct box *b,
			       struct touched *x);

/* Add what a box of a part's dataset touches. */
static void touched_add_box(const struct layout *l, const struct box *b,
			    struct touched *x)
{
	uint64_t n, bytes;

	if (l->kind == LAYOUT_NESTED)
		touched_add_mosaic(l->nested, b, x);
	if (l->kind != LAYOUT_CHUNKED)
		return;
	n = grid_touched(l->grid, b);
	if (add_overflows(x->chunks, n, &x->chunks))
		x->chunks = UINT64_MAX;
	if (mul_overflows(n, l->grid->chunk_bytes, &bytes) ||
	    add_overflows(x->bytes, bytes, &x->bytes))
		x->bytes = UINT64_MAX;
}

/* Extrapolate: the first `at` elements touched what was added since `before`; assume
 * the same rate for all `total` elements. */
static void touched_add_rest(struct touched *x, const struct touched *before,
			     uint64_t at, uint64_t total)
{
	uint64_t times = total / max_u64(at, 1);

	if (mul_overflows(x->chunks - before->chunks, times, &x->chunks) ||
	    add_overflows(x->chunks, before->chunks, &x->chunks))
		x->chunks = UINT64_MAX;
	if (mul_overflows(x->bytes - before->bytes, times, &x->bytes) ||
	    add_overflows(x->bytes, before->bytes, &x->bytes))
		x->bytes = UINT64_MAX;
}

/* Add what a box of a mosaic touches, tile by tile; a tile counts as the box around the
 * elements taken from it.  A part that is not open yet is assumed to be stored as the
 * typical one. */
static void touched_add_mosaic(struct tensor *t, const struct box *b,
			       struct touched *x)
{
	const struct touched before = *x;
	uint64_t total = box_elements(b, t->rank), at = 0;
	const struct layout *like, *l, *of = NULL;
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	struct box around;
	int64_t tile = -1;

	if (typical_layout(t, &like, x, NULL) < 0 || !like)
		return;
	for (; at < total && x->pieces < PIECES_MAX; x->pieces++) {
		mosaic_find(t->mosaic, b, at, &hit);
		l = hit.tile < 0 ? NULL
				 : atomic_load(&t->parts[hit.part].layout);
		l = l ? l : like;
		if (hit.tile < 0 || !l->grid ||
		    mosaic_piece(t->mosaic, &hit, b, at, l->grid->rank,
				 l->grid->shape, &piece, NULL) < 0) {
			at += hit.run;
			continue;
		}
		if (tile == hit.tile) {
			box_join(&around, &piece.from, l->grid->rank);
		} else {
			if (of)
				touched_add_box(of, &around, x);
			around = piece.from;
			tile = hit.tile;
			of = l;
		}
		at += piece.run;
	}
	if (of)
		touched_add_box(of, &around, x);
	if (at < total)
		touched_add_rest(x, &before, at, total);
}

/* Set *out to the first sample that has data. */
static void sample_box(const struct tensor *t, unsigned axes, struct box *out)
{
	struct tile first;

	tensor_whole_box(t, out);
	for (unsigned i = 0; i < axes && i < t->rank; i++)
		out->count[i] = 1;
	if (!t->mosaic || !mosaic_count(t->mosaic))
		return;
	mosaic_tile(t->mosaic, 0, &first);
	for (unsigned i = 0; i < axes && i < t->rank; i++)
		out->start[i] = first.to.start[i];
}

int tensor_sample_cost(struct tensor *t, unsigned axes, struct sample_cost *out,
		       struct error *err)
{
	const struct layout *l = NULL;
	struct touched x = {0, 0, 0, 0};
	struct box b;
	int r;

	memset(out, 0, sizeof *out);
	if (!t->elements || t->why_not || !dtype_is_binary(&t->dtype))
		return 0;
	sample_box(t, axes, &b);
	out->elements = box_elements(&b, t->rank);
	out->bytes = out->elements * t->dtype.size;
	r = typical_layout(t, &l, &x, err);
	if (r < 0 || !l)
		return r;
	if (t->mosaic)
		touched_add_mosaic(t, &b, &x);
	else
		touched_add_box(l, &b, &x);
	out->chunks = x.chunks;
	out->decoded = x.bytes;
	return 0;
}
