/* SPDX-License-Identifier: BSD-2-Clause */
/* Decide how each dataset is put together: as a stream of chunks, or by the library. */

/*
 * A dataset whose elements are served as they are stored, number by number, becomes a
 * stream of chunks, which all threads make.  Others (strings, sequences, numbers of
 * unusual width) are written by the library at the end.
 *
 * The output's chunks have the shape of those of the largest part, so that most can be
 * copied as they are.  Where that part has no chunks, they have the shape of the block
 * that the part is in the dataset, cut to a sensible size: the shape of a block says how
 * the data was made, and probably how it will be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/parse.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/layout/tensor.h"
#include "pack/comp.h"
#include "tensors/merge/private.h"

/* Blocks that were not chunks are cut to BLOCK_MOST bytes at most, and joined to
 * BLOCK_LEAST bytes at least. */
#define BLOCK_MOST (UINT64_C(8) << 20)
#define BLOCK_LEAST (UINT64_C(64) << 10)

/* ---- tiles --------------------------------------------------------------- */

bool merge_tile_box(const struct tensor *t, uint32_t i, struct box *out)
{
	struct tile tile;

	if (!t->mosaic) {
		for (unsigned k = 0; k < t->rank; k++) {
			out->start[k] = 0;
			out->count[k] = t->shape[k];
		}
		return true;
	}
	mosaic_tile(t->mosaic, i, &tile);
	for (unsigned k = 0; k < t->rank; k++) {
		const struct slab *s = &tile.to;

		if (s->count[k] > 1 && s->stride[k] != s->block[k])
			return false;
		out->start[k] = s->start[k];
		out->count[k] = s->count[k] * s->block[k];
	}
	return true;
}

static uint32_t plan_tile_count(const struct tensor *t)
{
	return t->mosaic ? mosaic_count(t->mosaic) : 1;
}

static uint32_t plan_tile_part(const struct tensor *t, uint32_t i)
{
	struct tile tile;

	if (!t->mosaic)
		return 0;
	mosaic_tile(t->mosaic, i, &tile);
	return tile.part;
}

/* Fill in s->first and s->tile: which tiles each part has. */
static int index_tiles(struct stream *s, struct error *err)
{
	const struct tensor *t = s->t;
	uint32_t n = plan_tile_count(t), *fill;
	struct box b;

	s->first = calloc((size_t)t->nparts + 2, sizeof *s->first);
	s->tile = calloc((size_t)n + 1, sizeof *s->tile);
	s->part = calloc((size_t)t->nparts + 1, sizeof *s->part);
	if (!s->first || !s->tile || !s->part)
		return error_no_memory(err, "the table of parts");
	/* Count two places further on, so that filling in leaves the beginnings in
	 * s->first. */
	fill = s->first + 1;
	s->boxes = true;
	for (uint32_t i = 0; i < n; i++) {
		if (plan_tile_part(t, i) + 1 < t->nparts)
			fill[plan_tile_part(t, i) + 1]++;
		s->boxes = merge_tile_box(t, i, &b) && s->boxes;
	}
	for (uint32_t p = 1; p < t->nparts; p++)
		fill[p] += fill[p - 1];
	for (uint32_t i = 0; i < n; i++)
		s->tile[fill[plan_tile_part(t, i)]++] = i;
	return 0;
}

/* ---- chunks -------------------------------------------------------------- */

/* Return the part whose tile has the most elements, and the box of that tile; -1 if no
 * tile is a box. */
static int64_t largest_part(const struct tensor *t, struct box *box)
{
	uint64_t most = 0, n;
	int64_t part = -1;
	struct box b;

	for (uint32_t i = 0; i < plan_tile_count(t); i++) {
		if (!merge_tile_box(t, i, &b))
			continue;
		n = box_elements(&b, t->rank);
		if (n <= most)
			continue;
		most = n;
		*box = b;
		part = plan_tile_part(t, i);
	}
	return part;
}

/* Set `chunk` to the shape of the part's chunks along the axes of the tensor that box `b`
 * fills.  Axes with one element may be in one of the two only.  Return false if the other
 * axes differ. */
static bool chunk_of_part(const struct tensor *t, const struct box *b,
			  const struct grid *g, uint64_t *chunk)
{
	unsigned k = 0;

	if (g->rank == t->rank) {
		memcpy(chunk, g->chunk, t->rank * sizeof *chunk);
		return true;
	}
	for (unsigned i = 0; i < t->rank; i++) {
		chunk[i] = 1;
		if (b->count[i] == 1)
			continue;
		while (k < g->rank && g->shape[k] == 1)
			k++;
		if (k == g->rank || g->shape[k] != b->count[i])
			return false;
		chunk[i] = g->chunk[k++];
	}
	while (k < g->rank && g->shape[k] == 1)
		k++;
	return k == g->rank;
}

static uint64_t plan_chunk_bytes(const struct stream *s, const uint64_t *chunk)
{
	uint64_t n = s->t->dtype.size;

	for (unsigned i = 0; i < s->t->rank; i++)
		if (mul_overflows(n, max_u64(chunk[i], 1), &n))
			return UINT64_MAX;
	return n;
}

/* Make `chunk` a sensible size: halve the first axis that is longer than 1, or double the
 * axis with the most chunks. */
static void plan_cut_block(const struct stream *s, uint64_t *chunk)
{
	const struct tensor *t = s->t;

	while (plan_chunk_bytes(s, chunk) > BLOCK_MOST) {
		unsigned i = 0;

		while (i < s->own_rank && chunk[i] <= 1)
			i++;
		if (i == s->own_rank)
			return;
		chunk[i] = div_up(chunk[i], 2);
	}
	while (plan_chunk_bytes(s, chunk) < BLOCK_LEAST) {
		uint64_t most = 1;
		unsigned at = 0;

		for (unsigned i = 0; i < s->own_rank; i++) {
			uint64_t n = div_up(t->shape[i], max_u64(chunk[i], 1));

			if (n > most) {
				most = n;
				at = i;
			}
		}
		if (most == 1)
			return;
		chunk[at] = min_u64(chunk[at] * 2, t->shape[at]);
	}
}

/* Parse --chunk, "8,64,64" for example, for the dataset's own axes. */
static int chunk_given(const struct merge *m, const struct stream *s,
		       const char *path, uint64_t *chunk, struct error *err)
{
	const char *at = m->o.chunk;

	for (unsigned i = 0; i < s->own_rank; i++) {
		size_t n = strcspn(at, ",");
		char text[32];

		if (n >= sizeof text || !n ||
		    (at[n] == ',') != (i + 1 < s->own_rank))
			return error_set(err, -EINVAL,
					 "--chunk=%s: %s has %u axes",
					 m->o.chunk, path, s->own_rank);
		memcpy(text, at, n);
		text[n] = '\0';
		if (parse_count(text, 1, UINT32_MAX, &chunk[i], err) < 0)
			return error_prefix(err, "--chunk: ");
		at += n + (at[n] == ',');
	}
	return 0;
}

static int plan_choose_chunk(const struct merge *m, const struct stream *s,
			     const char *path, const struct layout *l,
			     const struct box *box, uint64_t *chunk,
			     struct error *err)
{
	const struct tensor *t = s->t;
	int r = 0;

	for (unsigned i = 0; i < t->rank; i++)
		chunk[i] = t->shape[i];
	if (m->o.chunk)
		r = chunk_given(m, s, path, chunk, err);
	else if (!l || l->kind != LAYOUT_CHUNKED || l->by_library ||
		 !chunk_of_part(t, box, l->grid, chunk)) {
		if (l)
			memcpy(chunk, box->count, t->rank * sizeof *chunk);
		plan_cut_block(s, chunk);
	}
	/* libhdf5 does not accept a chunk that is larger than the dataset. */
	for (unsigned i = 0; i < t->rank; i++)
		chunk[i] = max_u64(min_u64(chunk[i], t->shape[i]), 1);
	if (r == 0 && !m->o.chunk &&
	    plan_chunk_bytes(s, chunk) > BUILD_CHUNK_MAX)
		plan_cut_block(s, chunk);
	return r;
}

/* ---- filters ------------------------------------------------------------- */

/* The third parameter of the LZF filter (32000) is the size of a chunk in bytes. */
static void adapt_filters(struct stream *s)
{
	for (unsigned i = 0; i < s->pipeline.n; i++) {
		struct pipeline_filter *f = &s->pipeline.filter[i];

		if (f->id == 32000 && f->params.n >= 3)
			f->params.cd[2] = (uint32_t)s->grid.chunk_bytes;
	}
}

static int plan_choose_filters(const struct merge *m, struct stream *s,
			       const struct layout *l, struct error *err)
{
	s->pipeline.n = 0;
	if (m->o.comp_given)
		return comp_pipeline(&m->o.comp, (uint32_t)s->own_elem,
				     s->grid.chunk_bytes, &s->pipeline, err);
	if (l && l->kind == LAYOUT_CHUNKED)
		s->pipeline = *l->pipeline;
	adapt_filters(s);
	return 0;
}

int merge_plan_layout(struct merge *m, struct stream *s, const char *path,
		      struct error *err)
{
	const struct layout *l = NULL;
	uint64_t chunk[RANK_MAX];
	struct box box = {.start = {0}};
	int64_t part = largest_part(s->t, &box);
	int r = part < 0 ? 0 : tensor_learn(s->t, (uint32_t)part, &l, err);

	if (r == 0)
		r = plan_choose_chunk(m, s, path, l, &box, chunk, err);
	if (r < 0)
		return r;
	if (grid_init(&s->grid, s->t->rank, s->t->shape, chunk,
		      s->t->dtype.size) < 0 ||
	    (s->grid.count && s->grid.chunk_bytes > BUILD_CHUNK_MAX))
		return error_set(err, -EINVAL,
				 "%s: chunks must have less than 4 GiB: choose "
				 "smaller ones with --chunk=N,...",
				 path);
	if (s->grid.count > MERGE_CHUNKS_MAX)
		return error_set(err, -EINVAL,
				 "%s: %" PRIu64
				 " chunks are too many: choose larger ones "
				 "with --chunk=N,...",
				 path, s->grid.count);
	return plan_choose_filters(m, s, l, err);
}

/* ---- tensors ------------------------------------------------------------- */

static bool plan_served_as_stored(const struct tensor *t)
{
	struct recode r;

	return dtype_is_binary(&t->dtype) && t->stored.kind != DTYPE_OTHER &&
	       dtype_recode(&t->stored, &t->dtype, NULL, &r) &&
	       recode_is_identity(&r);
}

static bool named_flags(const char *path)
{
	return !strcmp(strrchr(path, '/') + 1, "flags");
}

static int plan_add_values(struct merge *m, struct item *it, struct tensor *t,
			   struct error *err)
{
	struct values v = {.t = t,
			   .is_flags = named_flags(it->path) && t->rank == 1 &&
				       t->dtype.kind == DTYPE_STRING};

	if (it->kind == ITEM_STREAM)
		it->kind = ITEM_VALUES;
	it->index = m->values.n;
	v.text.path = strdup(it->path);
	if (v.text.path && vec_push(&m->values, v))
		return 0;
	free(v.text.path);
	tensor_free(t);
	return error_no_memory(err, "the description of a dataset");
}

static int plan_add_stream(struct merge *m, struct item *it, struct tensor *t,
			   const struct hdf5_description *d, struct error *err)
{
	struct stream s = {
		.t = t, .own_rank = d->own_rank, .own_elem = t->dtype.size};

	for (unsigned i = d->own_rank; i < t->rank; i++)
		s.own_elem *= t->shape[i]; /* the type's size was checked */
	it->index = m->streams.n;
	if (!vec_push(&m->streams, s)) {
		tensor_free(t);
		return error_no_memory(err, "the description of a dataset");
	}
	return index_tiles(&m->streams.at[m->streams.n - 1], err);
}

static int plan_add_tensor(struct merge *m, struct item *it, struct error *err)
{
	struct hdf5_place at = {m->s, it->file, it->object};
	struct hdf5_description d;
	struct tensor *t;
	int r = hdf5_describe_here(&at, NULL, &d, err);

	if (r < 0)
		return error_prefix(err, "%s: ", it->path);
	t = (struct tensor *)hdf5_tensor_new(&at, it->path, &d, NULL);
	if (!t)
		r = error_no_memory(err, "the description of a dataset");
	else if (t->why_not)
		r = error_set(err, t->why_code ? t->why_code : -ENOTSUP,
			      "%s: %s", it->path, t->why_not);
	if (r < 0)
		tensor_free(t);
	else if (it->kind == ITEM_STREAM && plan_served_as_stored(t) &&
		 d.own_rank)
		r = plan_add_stream(m, it, t, &d, err);
	else
		r = plan_add_values(m, it, t, err);
	hdf5_description_free(&d);
	return r;
}

int merge_plan(struct merge *m, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < m->items.n && r == 0; i++) {
		struct item *it = &m->items.at[i];

		if (it->kind == ITEM_STREAM ||
		    (it->kind == ITEM_KEPT && m->o.check_flag &&
		     named_flags(it->path)))
			r = plan_add_tensor(m, it, err);
	}
	m->result->datasets = m->streams.n;
	for (size_t i = 0; i < m->streams.n && r == 0; i++)
		m->result->bytes += m->streams.at[i].t->bytes;
	for (size_t i = 0; i < m->items.n && r == 0; i++)
		m->result->datasets += m->items.at[i].kind == ITEM_VALUES;
	return r;
}
