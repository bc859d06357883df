/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor: parts laid over an array, each a dataset stored in its own way. */
/*
 * A window of a view becomes extents in two steps: the mosaic says which part covers an
 * element (or which gap, which is fill value) and where in that part's dataset, and the
 * part's layout says which chunk holds it and where.  Most tensors have one part and no
 * mosaic.  A part's layout is learnt at its first use (`tensor_learn`) and published
 * with one compare-and-swap; mapping afterwards is arithmetic.
 *
 * A part may itself be a mosaic (a virtual dataset of virtual datasets): then its
 * layout has a tensor of its own, which is mapped in the same way.
 *
 * The chunks of all parts are one chunk set, so that the cache, prefetching and
 * `verify` see a tensor, not files; `chunks.c` implements it.
 */
#include "tensor/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "tensor/text.h"

/* ---- layouts ------------------------------------------------------------- */

/* For missing=fill: make a layout that says "never written", for a part whose file is
 * missing.  Return NULL without memory. */
static struct layout *layout_missing(struct tensor *t, const struct error *why)
{
	struct layout *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	log_warn("%s: elements of a missing part read as fill value "
		 "(missing=fill): %s",
		 t->name, why->text);
	l->kind = LAYOUT_ABSENT;
	l->fill = t->fill;
	return l;
}

static void layout_free(struct layout *l)
{
	if (!l)
		return;
	tensor_free(l->nested);
	free((void *)l->stretches);
	free(l);
}

static void tensor_publish_part(struct tensor *t, const struct layout *l)
{
	counter_add(COUNT_PARTS_OPENED, 1);
	if (l->kind == LAYOUT_CHUNKED)
		t->set.unit = l->grid->chunk_bytes;
	if (l->kind == LAYOUT_NESTED)
		atomic_store(&t->nests, true);
	atomic_fetch_add(&t->learnt, 1);
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
		made = layout_missing(t, &why);
	else if (r < 0)
		return error_set(err, r, "%s", why.text);
	if (!made)
		return error_no_memory(err, "the layout of a dataset");
	if (atomic_compare_exchange_strong(&part->layout, &have, made)) {
		tensor_publish_part(t, made);
		have = made;
	} else {
		layout_free(made);
	}
	*out = have;
	return 0;
}

/* ---- boxes and parts ----------------------------------------------------- */

/* Are all layouts known, so that windows need no preparation? */
static bool tensor_all_learnt(const struct tensor *t)
{
	return atomic_load(&t->learnt) == t->nparts && !atomic_load(&t->nests);
}

static int tensor_prepare_part(struct tensor *t, uint32_t p,
			       const struct box *b, uint64_t off, uint64_t len,
			       struct error *err)
{
	const struct layout *l;
	int r = tensor_learn(t, p, &l, err);

	if (r < 0 || l->kind != LAYOUT_NESTED)
		return r;
	return tensor_prepare_box(l->nested, b, off, len, err);
}

/* Put the dataset's name in front of the error of a piece that does not fit into it. */
static int tensor_name_part(const struct tensor *t, uint32_t p, int r,
			    struct error *err)
{
	if (r < 0)
		error_prefix(err, "%s: '%s': ",
			     handles_name(t->handles, t->parts[p].file),
			     t->parts[p].dataset);
	return r;
}

/* Learn the part that a hit names and find the piece in it.  A missing part that is
 * filled in has no shape; piece->run is 0 then. */
static int tensor_find_piece(struct tensor *t, const struct box *b, uint64_t at,
			     const struct mosaic_hit *hit,
			     struct mosaic_piece *piece, struct error *err)
{
	const struct layout *l;
	int r = tensor_learn(t, hit->part, &l, err);

	piece->run = 0;
	if (r < 0 || !l->grid)
		return r;
	r = mosaic_piece(t->mosaic, hit, b, at, l->grid->rank, l->grid->shape,
			 piece, err);
	return tensor_name_part(t, hit->part, r, err);
}

/* Prepare the elements from `at` on that one tile covers; set *run to how many these
 * are. */
static int tensor_prepare_tile(struct tensor *t, const struct box *b,
			       uint64_t at, uint64_t last, uint64_t *run,
			       struct error *err)
{
	uint64_t elem = t->dtype.size;
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	int r;

	mosaic_find(t->mosaic, b, at, &hit);
	*run = hit.run;
	if (hit.tile < 0)
		return 0;
	r = tensor_find_piece(t, b, at, &hit, &piece, err);
	if (r < 0 || !piece.run)
		return r;
	*run = piece.run;
	return tensor_prepare_part(t, hit.part, &piece.from, piece.skip * elem,
				   min_u64(piece.run, last - at + 1) * elem,
				   err);
}

int tensor_prepare_box(struct tensor *t, const struct box *b, uint64_t off,
		       uint64_t len, struct error *err)
{
	uint64_t elem = t->dtype.size, at, last, run;
	int r;

	if (!len || !elem || tensor_all_learnt(t))
		return 0;
	if (!t->mosaic)
		return tensor_prepare_part(t, 0, b, off, len, err);
	at = off / elem;
	last = (off + len - 1) / elem;
	for (; at <= last; at += run) {
		r = tensor_prepare_tile(t, b, at, last, &run, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int tensor_find(struct tensor *t, const struct box *b, uint64_t at,
		int64_t *part, struct mosaic_piece *out, struct error *err)
{
	struct mosaic_hit hit;
	int r;

	if (!t->mosaic) {
		*part = 0;
		out->from = *b;
		out->skip = at;
		out->run = box_elements(b, t->rank) - at;
		return 0;
	}
	mosaic_find(t->mosaic, b, at, &hit);
	out->run = hit.run;
	*part = -1;
	if (hit.tile < 0)
		return 0;
	r = tensor_find_piece(t, b, at, &hit, out, err);
	if (r < 0)
		return r;
	if (out->run)
		*part = hit.part;
	else
		out->run = hit.run; /* a missing part that is filled in */
	return 0;
}

int64_t tensor_part_of(const struct tensor *t, const struct box *b)
{
	struct mosaic_hit hit;
	uint64_t n = box_elements(b, t->rank);

	if (!t->mosaic)
		return t->nparts ? 0 : -1;
	if (!n)
		return -1;
	mosaic_find(t->mosaic, b, 0, &hit);
	return hit.tile >= 0 && hit.run >= n ? (int64_t)hit.part : -1;
}

/* ---- extents ------------------------------------------------------------- */

/* Append contiguous data that is served as stored, from byte `inside` of it on.  Return
 * the bytes appended. */
static uint64_t tensor_map_linear(const struct layout *l, uint64_t inside,
				  uint64_t run, struct plan *plan)
{
	struct bisect b = bisect_in(1, max_u64(l->nstretches, 1));
	const struct stretch *s;

	if (!l->nstretches)
		return plan_file(plan, l->file, l->pos + inside, run);
	while (bisect_next(&b))
		bisect_answer(&b, l->stretches[b.mid].begin > inside);
	s = &l->stretches[b.lo - 1];
	inside -= s->begin;
	return plan_file(plan, s->file, s->pos + inside,
			 min_u64(run, s->len - inside));
}

/* Append one run of a part.  Return the bytes appended; 0 if the plan is full. */
static uint64_t tensor_map_run(const struct tensor *t, uint32_t p,
			       const struct layout *l, const struct box *b,
			       uint64_t off, struct plan *plan)
{
	struct chunk_set *set = (struct chunk_set *)&t->set;
	uint64_t chunk, inside, run, piece, size;

	grid_run(l->grid, b, off, &chunk, &inside, &run);
	if (l->kind != LAYOUT_LINEAR)
		return plan_chunk(plan, set, tensor_chunk_id(p, chunk), inside,
				  run);
	if (!l->recode)
		return tensor_map_linear(l, inside, run, plan);
	size = layout_piece(l);
	piece = inside / size;
	return plan_chunk(plan, set, tensor_chunk_id(p, piece), inside % size,
			  min_u64(run, (piece + 1) * size - inside));
}

/* Append several rows of narrow runs at once, if the plan allows it and the window
 * wants two rows or more.  Return the bytes appended; 0 if it has to go run by run. */
static uint64_t tensor_map_rows(const struct tensor *t, uint32_t p,
				const struct layout *l, const struct box *b,
				uint64_t off, struct plan *plan)
{
	struct chunk_set *set = (struct chunk_set *)&t->set;
	struct strip strips[PLAN_MAX];
	struct grid_rows rows;
	uint64_t at = 0, run;
	unsigned n = 0;

	if (l->kind == LAYOUT_LINEAR || !grid_find_rows(l->grid, b, off, &rows))
		return 0;
	rows.rows = min_u64(rows.rows, (plan->want - plan->have) / rows.pitch);
	rows.rows = min_u64(rows.rows, UINT32_MAX);
	if (rows.rows < 2)
		return 0;
	for (; at < rows.pitch && n < PLAN_MAX; at += run, n++) {
		struct strip *s = &strips[n];

		grid_run(l->grid, b, off + at, &s->index, &s->skip, &run);
		s->index = tensor_chunk_id(p, s->index);
		s->len = run;
		/* Long runs are appended one by one. */
		if (run >= PLAN_RUN)
			return 0;
	}
	if (at != rows.pitch)
		return 0;
	return plan_strips(plan, set, strips, n, (uint32_t)rows.rows,
			   rows.step);
}

/* Append `len` bytes of box `b` of part p's dataset, from byte `off` of the box on. */
static int tensor_map_part(const struct tensor *t, uint32_t p,
			   const struct layout *l, const struct box *b,
			   uint64_t off, uint64_t len, struct plan *plan,
			   struct error *err)
{
	uint64_t limit = plan->want, took;
	int r = 0;

	/* Do not append more than this part has. */
	if (plan->want - plan->have > len)
		plan->want = plan->have + len;
	if (l->kind == LAYOUT_NESTED)
		r = tensor_map_box(l->nested, b, off, plan, err);
	else if (l->kind == LAYOUT_ABSENT)
		plan_fill(plan, l->fill, off, len);
	else
		while (plan_open(plan)) {
			took = plan->takes_strips
				       ? tensor_map_rows(t, p, l, b, off, plan)
				       : 0;
			if (!took && plan_open(plan))
				took = tensor_map_run(t, p, l, b, off, plan);
			if (!took)
				break;
			off += took;
		}
	plan->want = limit;
	return r;
}

static int tensor_not_prepared(const struct tensor *t, uint32_t p,
			       struct error *err)
{
	return error_set(err, -EIO, "%s: part %u was not prepared", t->name,
			 (unsigned)p);
}

/* Append what covers element `at` of the box, from byte `inner` of the element on. */
static int tensor_map_tile(const struct tensor *t, const struct box *b,
			   uint64_t at, uint64_t inner, struct plan *plan,
			   struct error *err)
{
	uint64_t elem = t->dtype.size;
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	const struct layout *l;
	int r;

	mosaic_find(t->mosaic, b, at, &hit);
	if (hit.tile < 0) {
		plan_fill(plan, t->fill, at * elem + inner,
			  hit.run * elem - inner);
		return 0;
	}
	l = atomic_load(&t->parts[hit.part].layout);
	if (!l)
		return tensor_not_prepared(t, hit.part, err);
	if (!l->grid) {
		plan_fill(plan, l->fill, at * elem + inner,
			  hit.run * elem - inner);
		return 0;
	}
	r = mosaic_piece(t->mosaic, &hit, b, at, l->grid->rank, l->grid->shape,
			 &piece, err);
	if (r < 0)
		return tensor_name_part(t, hit.part, r, err);
	return tensor_map_part(t, hit.part, l, &piece.from,
			       piece.skip * elem + inner,
			       piece.run * elem - inner, plan, err);
}

int tensor_map_box(const struct tensor *t, const struct box *b, uint64_t off,
		   struct plan *plan, struct error *err)
{
	uint64_t elem = t->dtype.size;
	uint64_t total = box_elements(b, t->rank) * elem;
	const struct layout *l;

	if (!t->mosaic) {
		l = off < total ? atomic_load(&t->parts[0].layout) : NULL;
		if (off >= total)
			return 0;
		return l ? tensor_map_part(t, 0, l, b, off, total - off, plan,
					   err)
			 : tensor_not_prepared(t, 0, err);
	}
	while (plan_open(plan) && off < total) {
		uint64_t before = plan->have;
		int r = tensor_map_tile(t, b, off / elem, off % elem, plan,
					err);

		if (r < 0)
			return r;
		if (plan->have == before)
			break;
		off += plan->have - before;
	}
	return 0;
}

uint64_t tensor_map_steps(const struct tensor *t, const struct box *b,
			  unsigned axis, uint64_t step, uint64_t n,
			  struct plan *plan)
{
	const struct layout *l =
		t->mosaic ? NULL : atomic_load(&t->parts[0].layout);
	uint64_t bytes = box_elements(b, t->rank) * t->dtype.size;
	uint64_t chunk, inside, run, rows, stride = t->dtype.size;
	struct strip strip;

	if (!plan->takes_strips || !l || l->kind != LAYOUT_CHUNKED || !bytes ||
	    bytes >= PLAN_RUN)
		return 0;
	grid_run(l->grid, b, 0, &chunk, &inside, &run);
	rows = (l->grid->chunk[axis] - 1 -
		b->start[axis] % l->grid->chunk[axis]) /
		       step +
	       1;
	rows = min_u64(min_u64(rows, n), (plan->want - plan->have) / bytes);
	rows = min_u64(rows, UINT32_MAX);
	if (run < bytes || rows < 2)
		return 0;
	for (unsigned i = axis + 1; i < t->rank; i++)
		stride *= l->grid->chunk[i];
	strip = (struct strip){tensor_chunk_id(0, chunk), inside, bytes};
	return plan_strips(plan, (struct chunk_set *)&t->set, &strip, 1,
			   (uint32_t)rows, stride * step);
}

void tensor_free(struct tensor *t)
{
	if (!t)
		return;
	for (uint32_t p = 0; t->parts && p < t->nparts; p++)
		layout_free((struct layout *)atomic_load(&t->parts[p].layout));
	text_free(t->text);
	mosaic_free(t->mosaic);
	free(t->parts);
	free(t->why_not);
	free(t->note);
	free(t->unreadable);
	free(t->name);
	if (t->ops && t->ops->free)
		t->ops->free(t);
	else
		free(t);
}
