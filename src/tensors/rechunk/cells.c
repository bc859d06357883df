/* SPDX-License-Identifier: BSD-2-Clause */
/* The pieces that a tensor is stored in, as a regular grid. */
#include "tensors/rechunk/cells.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "tensors/rechunk/plan.h"

/* Bytes of contiguous data that are read together, and the least bytes of a job. */
#define RUN_BYTES (UINT64_C(1) << 20)
#define JOB_BYTES (UINT64_C(256) << 10)
/* Parts of parts that are looked at, at most. */
#define PARTS_MOST (UINT32_C(1) << 20)

/* Size before recoding of `bytes` served bytes, if that is more. */
static uint64_t before_recoding(const struct layout *l, uint64_t bytes)
{
	const struct recode *r = l->recode;

	return r && r->from > r->to
		       ? rechunk_times(div_up(bytes, r->to), r->from)
		       : bytes;
}

/* ---- bytes decoded together ------------------------------------------------------ */

static int largest_of(struct tensor *t, uint32_t *left, uint64_t *most,
		      struct error *err);

static int cells_measure_layout(const struct layout *l, uint32_t *left,
				uint64_t *most, struct error *err)
{
	uint64_t bytes = 0;

	switch (l->kind) {
	case LAYOUT_NESTED:
		return largest_of(l->nested, left, most, err);
	case LAYOUT_CHUNKED:
		bytes = l->grid->chunk_bytes;
		break;
	case LAYOUT_FETCHED:
		bytes = rechunk_times(l->grid->chunk_bytes, l->grid->count);
		break;
	case LAYOUT_LINEAR:
		if (l->recode || l->nstretches || l->by_library)
			bytes = layout_piece(l);
		break;
	case LAYOUT_ABSENT:
		break;
	}
	*most = max_u64(*most, before_recoding(l, bytes));
	return 0;
}

static int largest_of(struct tensor *t, uint32_t *left, uint64_t *most,
		      struct error *err)
{
	for (uint32_t p = 0; p < t->nparts; p++) {
		const struct layout *l;
		int r;

		if (!(*left)--)
			return error_set(err, -ENOTSUP,
					 "%s: virtual datasets of virtual "
					 "datasets have too many parts",
					 t->name);
		r = tensor_learn(t, p, &l, err);
		if (r == 0)
			r = cells_measure_layout(l, left, most, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the grid ------------------------------------------------------------ */

/* Set `cell` to as many of the trailing axes as have about `bytes` bytes. */
static void trailing(const struct tensor *t, uint64_t bytes, uint64_t *cell)
{
	uint64_t room = max_u64(bytes / t->dtype.size, 1);

	for (unsigned i = t->rank; i-- > 0;) {
		cell[i] = max_u64(min_u64(t->shape[i], room), 1);
		room = max_u64(room / cell[i], 1);
	}
}

/* Set `cell` to the chunks of the part with the first element of block `b`, if they are a
 * finer grid than the block. */
static bool chunks_in(struct tensor *t, const struct box *b, uint64_t *cell)
{
	struct mosaic_piece piece;
	const struct layout *l;
	int64_t part;

	if (tensor_find(t, b, 0, &part, &piece, NULL) < 0 || part < 0 ||
	    tensor_learn(t, (uint32_t)part, &l, NULL) < 0 ||
	    l->kind != LAYOUT_CHUNKED || l->grid->rank != t->rank)
		return false;
	for (unsigned i = 0; i < t->rank; i++)
		cell[i] = min_u64(l->grid->chunk[i], b->count[i]);
	return true;
}

static void find_grid(struct tensor *t, struct rechunk_cells *c)
{
	const struct layout *l;
	struct box block;

	trailing(t, RUN_BYTES, c->cell);
	if (!t->nparts || tensor_learn(t, 0, &l, NULL) < 0)
		return;
	c->pipeline = l->kind == LAYOUT_CHUNKED ? l->pipeline : NULL;
	if (t->mosaic) {
		if (!t->elements || !tensor_blocks(t))
			return;
		tensor_block_box(t, 0, &block);
		c->chunked = chunks_in(t, &block, c->cell);
		memcpy(c->chunk, c->cell, sizeof c->chunk);
	} else if (l->kind == LAYOUT_CHUNKED) {
		c->chunked = true;
		memcpy(c->chunk, l->grid->chunk, sizeof c->chunk);
		for (unsigned i = 0; i < t->rank; i++)
			c->cell[i] =
				max_u64(min_u64(c->chunk[i], t->shape[i]), 1);
	}
}

int rechunk_cells_find(struct tensor *t, struct rechunk_cells *out,
		       struct error *err)
{
	uint32_t left = PARTS_MOST;
	int r;

	memset(out, 0, sizeof *out);
	r = largest_of(t, &left, &out->decoded, err);
	if (r == 0)
		find_grid(t, out);
	return r;
}

void rechunk_cells_join(const struct tensor *t, uint64_t *cell)
{
	uint64_t bytes = t->dtype.size;

	for (unsigned i = 0; i < t->rank; i++)
		bytes = rechunk_times(bytes, cell[i]);
	for (unsigned i = t->rank; i-- > 0 && bytes < JOB_BYTES;) {
		uint64_t more = div_up(JOB_BYTES, bytes);
		uint64_t all = div_up(t->shape[i], cell[i]);

		more = min_u64(more, all);
		if (more < 2)
			continue;
		cell[i] *= more;
		bytes = rechunk_times(bytes, more);
	}
}
