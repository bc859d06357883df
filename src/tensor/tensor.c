/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor: parts along the first axis, each a dataset stored in its own way. */
/*
 * A window of a view becomes extents in two steps: the rows say which part (or
 * which gap, which is fill value), and the part's layout says which chunk and
 * where in it.  A part's layout is learnt at its first use (`tensor_learn`) and
 * published with one compare-and-swap; mapping afterwards is arithmetic only.
 *
 * The chunks of all parts are one chunk set, so that the cache, prefetching
 * and `verify` see a tensor, not files.
 */
#include "tensor/tensor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "tensor/text.h"

/* Locations fetched from the source at once; 24 KiB in the cache. */
#define SEGMENT 1024

int64_t tensor_part_at(const struct tensor *t, uint64_t row, uint64_t *end)
{
	uint32_t lo = 0, hi = t->nparts;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->parts[mid].end <= row)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < t->nparts && t->parts[lo].begin <= row) {
		*end = t->parts[lo].end;
		return lo;
	}
	*end = lo < t->nparts ? t->parts[lo].begin
			      : max_u64(t->rank ? t->shape[0] : 1, row + 1);
	return -1;
}

uint64_t layout_chunks(const struct layout *l)
{
	switch (l->kind) {
	case LAYOUT_CHUNKED:
		return l->grid->count;
	case LAYOUT_LINEAR:
		return l->swap ? div_up(l->grid->chunk_bytes, TENSOR_PIECE) : 1;
	case LAYOUT_FETCHED:
		return 1;
	case LAYOUT_ABSENT:
		break;
	}
	return 0;
}

/* missing=fill: a layout that says "never written" for a part that is gone. */
static struct layout *layout_missing(struct tensor *t, uint32_t p,
				     const struct error *why)
{
	struct layout *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	log_warn("%s: rows %llu to %llu read as fill value (missing=fill): %s",
		 t->name, (unsigned long long)t->parts[p].begin,
		 (unsigned long long)t->parts[p].end, why->text);
	l->kind = LAYOUT_ABSENT;
	l->fill = t->fill;
	return l;
}

int tensor_learn(struct tensor *t, uint32_t p, const struct layout **out,
		 struct error *err)
{
	struct part *part = &t->parts[p];
	const struct layout *have = atomic_load(&part->layout);
	struct layout *made = NULL;
	struct error why = {0};
	int r;

	if (have) {
		*out = have;
		return 0;
	}
	r = t->ops->learn(t, p, &made, &why);
	if (r == -ENODATA && t->missing == MISSING_FILL)
		made = layout_missing(t, p, &why);
	else if (r < 0)
		return error_set(err, r, "%s", why.text);
	if (!made)
		return error_set(err, -ENOMEM, "out of memory");
	if (atomic_compare_exchange_strong(&part->layout, &have, made)) {
		counter_add(COUNT_PARTS_OPENED, 1);
		if (made->kind == LAYOUT_CHUNKED)
			t->set.unit = made->grid->chunk_bytes;
		have = made;
	} else {
		free(made);
	}
	*out = have;
	return 0;
}

/* Bytes of one row (index of the first axis) of a box. */
static uint64_t box_row_bytes(const struct tensor *t, const struct box *b)
{
	uint64_t n = t->dtype.size;

	for (unsigned i = 1; i < t->rank; i++)
		n *= b->count[i];
	return n;
}

/* The rows of `b` that part p (or a gap) ending at `end` covers, from `row` on:
 * `sub` is that box in the tensor's coordinates. */
static void box_rows(const struct tensor *t, const struct box *b, uint64_t row,
		     uint64_t end, struct box *sub)
{
	*sub = *b;
	if (!t->rank)
		return;
	sub->start[0] = row;
	sub->count[0] = min_u64(end, b->start[0] + b->count[0]) - row;
}

int tensor_prepare_box(struct tensor *t, const struct box *b, uint64_t off,
		       uint64_t len, struct error *err)
{
	uint64_t row_bytes = box_row_bytes(t, b), row, last, end;
	const struct layout *l;

	if (!len || !row_bytes)
		return 0;
	row = t->rank ? b->start[0] + off / row_bytes : 0;
	last = t->rank ? b->start[0] + (off + len - 1) / row_bytes : 0;
	for (; row <= last; row = end) {
		int64_t p = tensor_part_at(t, row, &end);
		int r = p < 0 ? 0 : tensor_learn(t, (uint32_t)p, &l, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* One run of a part: append it; the bytes taken (0: the plan is full). */
static uint64_t map_run(const struct tensor *t, uint32_t p,
			const struct layout *l, const struct box *stored,
			uint64_t off, struct plan *plan)
{
	struct chunk_set *set = (struct chunk_set *)&t->set;
	uint64_t chunk, inside, run, piece;

	if (l->kind == LAYOUT_ABSENT)
		return plan_fill(plan, l->fill, off, INT64_MAX);
	grid_run(l->grid, stored, off, &chunk, &inside, &run);
	if (l->kind != LAYOUT_LINEAR)
		return plan_chunk(plan, set, tensor_chunk_id(p, chunk), inside,
				  run);
	if (!l->swap)
		return plan_file(plan, l->file, l->pos + inside, run);
	piece = inside / TENSOR_PIECE;
	return plan_chunk(plan, set, tensor_chunk_id(p, piece),
			  inside % TENSOR_PIECE,
			  min_u64(run, (piece + 1) * TENSOR_PIECE - inside));
}

/* The rows `sub` of part p, from byte `off` of them on, `len` bytes. */
static int map_part(const struct tensor *t, uint32_t p, const struct box *sub,
		    uint64_t off, uint64_t len, struct plan *plan,
		    struct error *err)
{
	const struct layout *l = atomic_load(&t->parts[p].layout);
	struct box stored = *sub;
	uint64_t limit = plan->want, took;

	if (!l)
		return error_set(err, -EIO, "%s: part %u was not prepared",
				 t->name, (unsigned)p);
	if (t->rank)
		stored.start[0] -= t->parts[p].begin;
	for (unsigned i = 0; l->origin && i < t->rank; i++)
		stored.start[i] += l->origin[i];
	/* The plan must not take more than this part has. */
	if (plan->want - plan->have > len)
		plan->want = plan->have + len;
	while (plan_open(plan)) {
		took = map_run(t, p, l, &stored, off, plan);
		if (!took)
			break;
		off += took;
	}
	plan->want = limit;
	return 0;
}

int tensor_map_box(const struct tensor *t, const struct box *b, uint64_t off,
		   struct plan *plan, struct error *err)
{
	uint64_t row_bytes = box_row_bytes(t, b);
	uint64_t total = row_bytes * (t->rank ? b->count[0] : 1);

	while (plan_open(plan) && off < total) {
		uint64_t row = t->rank ? b->start[0] + off / row_bytes : 0;
		uint64_t first = t->rank ? (row - b->start[0]) * row_bytes : 0;
		uint64_t end, len, before = plan->have;
		struct box sub;
		int64_t p = tensor_part_at(t, row, &end);
		int r = 0;

		box_rows(t, b, row, end, &sub);
		len = (t->rank ? sub.count[0] : 1) * row_bytes - (off - first);
		if (p < 0)
			plan_fill(plan, t->fill, off, len);
		else
			r = map_part(t, (uint32_t)p, &sub, off - first, len,
				     plan, err);
		if (r < 0)
			return r;
		if (plan->have == before)
			break;
		off += plan->have - before;
	}
	return 0;
}

void tensor_free(struct tensor *t)
{
	if (!t)
		return;
	for (uint32_t p = 0; t->parts && p < t->nparts; p++)
		free((void *)atomic_load(&t->parts[p].layout));
	text_free(t->text);
	free(t->parts);
	free(t->why_not);
	free(t->note);
	free(t->unreadable);
	free(t->name);
	free(t->source);
	if (t->ops && t->ops->free)
		t->ops->free(t);
	else
		free(t);
}

/* ---- the chunks of all parts as one set ---------------------------------- */

static struct tensor *tensor_of(const struct chunk_set *s)
{
	return (struct tensor *)s;
}
static uint32_t part_of(uint64_t index)
{
	return (uint32_t)(index >> TENSOR_CHUNK_BITS);
}
static uint64_t chunk_of(uint64_t index)
{
	return index & (TENSOR_CHUNK_MAX - 1);
}
static const struct layout *layout_of(const struct chunk_set *s, uint64_t index)
{
	return atomic_load(&tensor_of(s)->parts[part_of(index)].layout);
}

static int set_prepare(struct chunk_set *s, uint64_t index, struct error *err)
{
	const struct layout *l;

	return tensor_learn(tensor_of(s), part_of(index), &l, err);
}

static uint64_t set_segment_of(const struct chunk_set *s, uint64_t index)
{
	const struct layout *l = layout_of(s, index);

	if (!l || l->kind != LAYOUT_CHUNKED || l->by_library)
		return UINT64_MAX;
	return tensor_chunk_id(part_of(index), chunk_of(index) / SEGMENT);
}

static int set_load_segment(struct chunk_set *s, uint64_t segment,
			    _Atomic uint64_t *gauge, struct buf **out,
			    struct error *err)
{
	struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, segment);
	uint64_t first = chunk_of(segment) * SEGMENT;
	uint32_t n = (uint32_t)min_u64(l->grid->count - first, SEGMENT);
	struct buf *b = buf_new(n * sizeof(struct location), gauge);
	int r;

	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	r = t->ops->locate(t, part_of(segment), l, first, n, (void *)b->data,
			   err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static int locate_chunked(const struct tensor *t, const struct layout *l,
			  uint64_t index, const struct buf *segment,
			  struct chunk *c, struct error *err)
{
	const struct location *at = (const void *)segment->data;
	uint64_t k = chunk_of(index), i = k % SEGMENT;

	if (i >= segment->size / sizeof *at)
		return error_set(err, -EIO, "%s: no chunk %llu", t->name,
				 (unsigned long long)k);
	at += i;
	c->pipeline = l->pipeline->n ? l->pipeline : NULL;
	c->size = l->grid->chunk_bytes;
	if (at->pos == UINT64_MAX) {
		c->state = CHUNK_ABSENT;
		return 0;
	}
	c->pos = at->pos;
	c->stored = at->stored;
	c->skip_mask = (uint32_t)at->mask;
	if (l->raw_edges && grid_is_partial(l->grid, k))
		c->skip_mask = UINT32_MAX;
	return 0;
}

static int set_locate(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *c,
		      struct error *err)
{
	const struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	uint64_t begin;

	memset(c, 0, sizeof *c);
	if (!l || chunk_of(index) >= layout_chunks(l))
		return error_set(err, -EIO, "%s: no chunk %llu in part %u",
				 t->name, (unsigned long long)chunk_of(index),
				 part_of(index));
	c->file = l->file;
	c->swap = l->swap;
	c->fill = l->fill;
	if (l->kind == LAYOUT_CHUNKED && !l->by_library)
		return locate_chunked(t, l, index, segment, c, err);
	if (l->kind != LAYOUT_LINEAR) {
		c->state = CHUNK_FETCH;
		c->size = l->grid->chunk_bytes;
		return 0;
	}
	begin = l->swap ? chunk_of(index) * TENSOR_PIECE : 0;
	c->pos = l->pos + begin;
	c->size = l->grid->chunk_bytes - begin;
	if (l->swap)
		c->size = min_u64(c->size, TENSOR_PIECE);
	c->stored = c->size;
	return 0;
}

static int set_fetch(struct chunk_set *s, uint64_t index,
		     _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err)
{
	struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	struct buf *b = buf_new(l->grid->chunk_bytes, gauge);
	int r;

	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	r = t->ops->fetch(t, part_of(index), l, chunk_of(index), b->data,
			  b->size, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	if (l->swap)
		swap_bytes(b->data, b->size, l->swap);
	*out = b;
	return 0;
}

static bool set_next(const struct chunk_set *s, uint64_t index, uint64_t *out)
{
	const struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	uint32_t p = part_of(index);

	if (!l)
		return false;
	if (chunk_of(index) + 1 < layout_chunks(l)) {
		*out = index + 1;
		return true;
	}
	if (p + 1 >= t->nparts)
		return false;
	*out = tensor_chunk_id(p + 1, 0);
	return true;
}

static void set_describe(const struct chunk_set *s, uint64_t index, char *buf,
			 size_t n)
{
	const struct tensor *t = tensor_of(s);
	uint32_t p = part_of(index);

	if (t->distributed && p < t->nparts)
		snprintf(buf, n, "%s rows %llu to %llu, chunk %llu", t->name,
			 (unsigned long long)t->parts[p].begin,
			 (unsigned long long)t->parts[p].end,
			 (unsigned long long)chunk_of(index));
	else
		snprintf(buf, n, "%s chunk %llu", t->name,
			 (unsigned long long)chunk_of(index));
}

const struct chunk_set_ops tensor_chunk_ops = {
	.prepare = set_prepare,
	.segment_of = set_segment_of,
	.load_segment = set_load_segment,
	.locate = set_locate,
	.fetch = set_fetch,
	.next = set_next,
	.describe = set_describe,
};
