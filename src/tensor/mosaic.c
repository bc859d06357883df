/* SPDX-License-Identifier: BSD-2-Clause */
/* Which part covers an element: tiles, and where their elements come from. */
/*
 * A tile maps elements of the array to elements of a dataset, both counted in C order.
 * Usually its two sides have the same shape once axes of length 1 are dropped ((1, 4,
 * 6) and (4, 6)).  Then axes correspond, and the box of the source that a run comes
 * from is found axis by axis, so that a run may extend over many rows.  Where shapes
 * differ ((4, 6) and (24)) an element has a number in the tile, the same on both sides,
 * and runs follow the last axes.
 *
 * Every number of a tile comes from a file.  All are checked once, when the tile is
 * added: the tile lies inside the array (whose elements can be counted), and has
 * equally many elements on both sides.  After that no sum and no product of them
 * overflows.
 *
 * mosaic_index.c finds the tile at a place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/mosaic_private.h"

#define TILES_MAX (UINT32_MAX / 2)

int mosaic_new(struct mosaic **out, unsigned rank, const uint64_t *shape,
	       struct error *err)
{
	uint64_t elements = 1;
	bool empty = false;
	struct mosaic *m;

	*out = NULL;
	if (rank > RANK_MAX)
		return error_set(err, -EBADMSG,
				 "it has %u axes, which is too many", rank);
	for (unsigned i = 0; i < rank; i++)
		empty |= shape[i] == 0;
	for (unsigned i = 0; i < rank && !empty; i++)
		if (mul_overflows(elements, shape[i], &elements) ||
		    elements > INT64_MAX)
			return error_set(err, -EBADMSG,
					 "it has more than 2^63 elements");
	m = calloc(1, sizeof *m + rank * sizeof *m->shape);
	if (!m)
		return error_no_memory(err,
				       "the mappings of a virtual dataset");
	m->rank = rank;
	if (rank)
		memcpy(m->shape, shape, rank * sizeof *shape);
	*out = m;
	return 0;
}

void mosaic_free(struct mosaic *m)
{
	if (!m)
		return;
	vec_free(&m->tiles);
	vec_free(&m->words);
	free(m->order);
	free(m->highest);
	free(m->bounds);
	free(m->blocks);
	free(m);
}

/* ---- adding tiles -------------------------------------------------------- */

static bool slab_is_empty(const struct slab *s, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++)
		if (!s->count[i] || !s->block[i])
			return true;
	return false;
}

/* Set `out` to the simplest form of each axis, and *elements to the number of elements.
 * `limit` is where each axis ends, or NULL. */
static int slab_read(const struct mosaic *m, const struct slab *s,
		     unsigned rank, const uint64_t *limit, struct axis *out,
		     uint64_t *elements, struct error *err)
{
	*elements = 1;
	for (unsigned i = 0; i < rank; i++) {
		struct axis a = {s->start[i], s->stride[i], s->count[i],
				 s->block[i]};
		uint64_t max = limit ? limit[i] : INT64_MAX, end, n;

		if (a.count > 1 && a.stride < a.block)
			return error_set(err, -EBADMSG,
					 "mapping %u: its blocks overlap along "
					 "axis %u",
					 m->added, i);
		if (a.count == 1)
			a.stride = a.block;
		if (mul_overflows(a.count - 1, a.stride, &end) ||
		    add_overflows(end, a.start, &end) ||
		    add_overflows(end, a.block, &end) || end > max)
			return error_set(err, -EBADMSG,
					 "mapping %u: it goes beyond the end "
					 "of axis %u",
					 m->added, i);
		n = axis_extent(&a); /* not more than `end`, so it fits */
		if (a.stride == a.block)
			a = (struct axis){a.start, n, 1, n};
		if (mul_overflows(*elements, n, elements))
			*elements = UINT64_MAX;
		out[i] = a;
	}
	return 0;
}

static bool words_put(struct mosaic *m, const struct axis *a, unsigned rank,
		      unsigned shift, uint64_t *strided)
{
	for (unsigned i = 0; i < rank; i++) {
		bool many = a[i].count > 1;

		if (!vec_push(&m->words, a[i].start) ||
		    (many && (!vec_push(&m->words, a[i].stride) ||
			      !vec_push(&m->words, a[i].count))) ||
		    !vec_push(&m->words, a[i].block))
			return false;
		*strided |= (uint64_t)many << (shift + i);
	}
	return true;
}

static int tile_put(struct mosaic *m, const struct tile *t,
		    const struct axis *to, const struct axis *from,
		    struct error *err)
{
	struct tile_head h = {.at = m->words.n, .part = t->part, .all = t->all};

	h.rank = (uint8_t)(t->all ? 0 : t->rank);
	if (m->tiles.n == TILES_MAX ||
	    !words_put(m, to, m->rank, 0, &h.strided) ||
	    !words_put(m, from, h.rank, 32, &h.strided) ||
	    !vec_push(&m->tiles, h))
		return error_no_memory(err,
				       "the mappings of a virtual dataset");
	m->strided |= (h.strided & UINT32_MAX) != 0;
	return 0;
}

int mosaic_add(struct mosaic *m, const struct tile *t, struct error *err)
{
	struct axis to[RANK_MAX], from[RANK_MAX];
	uint64_t n, have;
	int r;

	if (slab_is_empty(&t->to, m->rank)) {
		m->added++;
		return 0;
	}
	r = slab_read(m, &t->to, m->rank, m->shape, to, &n, err);
	if (r < 0)
		return r;
	if (!t->all) {
		if (t->rank > RANK_MAX)
			return error_set(err, -EBADMSG,
					 "mapping %u: its source has %u axes, "
					 "which is too many",
					 m->added, t->rank);
		have = 0;
		if (!slab_is_empty(&t->from, t->rank))
			r = slab_read(m, &t->from, t->rank, NULL, from, &have,
				      err);
		if (r < 0)
			return r;
		if (n != have)
			return error_set(err, -EBADMSG,
					 "mapping %u: it maps %llu elements to "
					 "%llu of its source",
					 m->added, (unsigned long long)n,
					 (unsigned long long)have);
	}
	r = tile_put(m, t, to, from, err);
	if (r < 0)
		return r;
	m->added++;
	return 0;
}

/* Give back the room that a growing array did not use. */
static void mosaic_shrink(void **at, size_t n, size_t *room, size_t size)
{
	void *p = n ? realloc(*at, n * size) : NULL;

	if (!p)
		return;
	*at = p;
	*room = n;
}

int mosaic_finish(struct mosaic *m, struct error *err)
{
	int r;

	mosaic_shrink((void **)&m->tiles.at, m->tiles.n, &m->tiles.room,
		      sizeof *m->tiles.at);
	mosaic_shrink((void **)&m->words.at, m->words.n, &m->words.room,
		      sizeof *m->words.at);
	r = mosaic_index(m, err);
	return r < 0 ? r : mosaic_blocks_make(m, err);
}

uint32_t mosaic_count(const struct mosaic *m)
{
	return (uint32_t)m->tiles.n;
}

static void slab_write(const struct axis *a, unsigned rank, struct slab *out)
{
	for (unsigned i = 0; i < rank; i++) {
		out->start[i] = a[i].start;
		out->stride[i] = a[i].stride;
		out->count[i] = a[i].count;
		out->block[i] = a[i].block;
	}
}

void mosaic_tile(const struct mosaic *m, uint32_t i, struct tile *out)
{
	const struct tile_head *h = &m->tiles.at[i];
	struct axis to[RANK_MAX], from[RANK_MAX];

	out->part = h->part;
	out->all = h->all;
	out->rank = h->rank;
	tile_from(m, i, tile_to(m, i, to), from);
	slab_write(to, m->rank, &out->to);
	slab_write(from, h->rank, &out->from);
}

size_t mosaic_bytes(const struct mosaic *m)
{
	size_t nodes = m->leaves ? 2 * (size_t)m->leaves - 1 : 0;

	return sizeof *m + m->rank * sizeof *m->shape +
	       m->tiles.room * sizeof *m->tiles.at +
	       m->words.room * sizeof *m->words.at +
	       m->tiles.n * sizeof *m->order + nodes * sizeof *m->highest +
	       nodes * 2 * m->rank * sizeof *m->bounds +
	       (m->blocks ? m->tiles.n * sizeof *m->blocks : 0);
}

/* ---- pieces -------------------------------------------------------------- */

static int mosaic_misfit(struct error *err, uint64_t want, uint64_t have,
			 const char *what)
{
	return error_set(err, -EIO,
			 "a mapping takes %llu %s from a dataset that has %llu",
			 (unsigned long long)want, what,
			 (unsigned long long)have);
}

/* Set `from` to the axes of the source side of a tile, in a dataset of this shape. */
static int source_axes(const struct mosaic *m, uint32_t tile,
		       const uint64_t *words, const struct axis *to,
		       unsigned rank, const uint64_t *shape, struct axis *from,
		       struct error *err)
{
	const struct tile_head *h = &m->tiles.at[tile];
	uint64_t want = 1, have = 1;

	if (!h->all) {
		if (h->rank != rank)
			return mosaic_misfit(err, h->rank, rank, "axes");
		tile_from(m, tile, words, from);
		for (unsigned i = 0; i < rank; i++)
			if (axis_end(&from[i]) > shape[i])
				return mosaic_misfit(err, axis_end(&from[i]),
						     shape[i],
						     "indices of an axis");
		return 0;
	}
	for (unsigned i = 0; i < m->rank; i++)
		want *= axis_extent(&to[i]);
	for (unsigned i = 0; i < rank; i++) {
		if (mul_overflows(have, shape[i], &have))
			have = UINT64_MAX;
		from[i] = (struct axis){0, shape[i], 1, shape[i]};
	}
	return want == have ? 0 : mosaic_misfit(err, want, have, "elements");
}

/* Do both sides have the same shape once axes of length 1 are dropped? */
static bool axes_correspond(const struct axis *to, unsigned n,
			    const struct axis *from, unsigned k)
{
	for (;;) {
		while (n && axis_extent(&to[n - 1]) == 1)
			n--;
		while (k && axis_extent(&from[k - 1]) == 1)
			k--;
		if (!n || !k)
			return n == k;
		if (axis_extent(&to[--n]) != axis_extent(&from[--k]))
			return false;
	}
}

/*
 * Find the piece axis by axis.  From the last axis outwards, as long as the box's range
 * of an axis lies in one block on both sides, the run continues along the axis before
 * it.  `p` is the coordinates of the first element.
 */
static void piece_by_axis(unsigned rank, const struct axis *to,
			  const struct box *b, const uint64_t *p,
			  const struct axis *from, unsigned from_rank,
			  struct mosaic_piece *out)
{
	uint64_t index = 0, inside = 0, before, inner = 1;
	unsigned f = from_rank;
	bool joined = true;

	for (unsigned i = 0; i < from_rank; i++) {
		out->from.start[i] = from[i].start;
		out->from.count[i] = 1;
	}
	out->skip = 0;
	out->run = 1;
	for (unsigned i = rank; i-- > 0;) {
		uint64_t c = p[i] - b->start[i], left;
		bool whole;

		axis_find(&to[i], p[i], &index, &inside);
		left = min_u64(to[i].block - inside, b->count[i] - c);
		if (axis_extent(&to[i]) > 1) {
			while (axis_extent(&from[--f]) == 1)
				;
			out->from.start[f] = axis_at(&from[f], index, &before);
			left = min_u64(left, from[f].block - before);
			inside = min_u64(inside, before);
		}
		if (!joined)
			continue;
		whole = c <= inside && left == b->count[i] - c;
		out->run += (left - 1) * inner;
		if (axis_extent(&to[i]) > 1) {
			out->from.start[f] -= whole ? c : 0;
			out->from.count[f] = whole ? b->count[i] : left;
			out->skip += whole ? c * inner : 0;
		}
		inner *= b->count[i];
		joined = whole;
	}
}

/*
 * Find the piece by the number of its first element in the tile.  On the array's side
 * the run continues along the axis before where box and tile are the same; in the
 * source where an axis is one block.
 */
static void piece_by_number(unsigned rank, const struct axis *to,
			    const struct box *b, const uint64_t *p,
			    const struct axis *from, unsigned from_rank,
			    struct mosaic_piece *out)
{
	uint64_t number = 0, run = 1, inner = 1, length = 1, cell = 1;
	uint64_t index = 0, inside = 0;
	bool joined = true;

	for (unsigned i = rank; i-- > 0;) {
		uint64_t c = p[i] - b->start[i];

		axis_find(&to[i], p[i], &index, &inside);
		number += index * cell;
		cell *= axis_extent(&to[i]);
		if (joined)
			run += (min_u64(to[i].block - inside, b->count[i] - c) -
				1) *
			       inner;
		inner *= b->count[i];
		joined = joined && to[i].count == 1 && c == inside &&
			 b->count[i] == to[i].block;
	}
	out->skip = 0;
	inner = 1;
	joined = true;
	for (unsigned i = from_rank; i-- > 0;) {
		index = number % axis_extent(&from[i]);
		number /= axis_extent(&from[i]);
		out->from.start[i] = axis_at(&from[i], index, &inside);
		out->from.count[i] = 1;
		if (!joined)
			continue;
		joined = from[i].count == 1;
		length += (from[i].block - inside - 1) * inner;
		out->from.count[i] = from[i].block - (joined ? 0 : inside);
		if (joined) {
			out->from.start[i] = from[i].start;
			out->skip += index * inner;
			inner *= from[i].block;
		}
	}
	out->run = min_u64(run, length);
}

int mosaic_piece(const struct mosaic *m, const struct mosaic_hit *hit,
		 const struct box *b, uint64_t at, unsigned rank,
		 const uint64_t *shape, struct mosaic_piece *out,
		 struct error *err)
{
	struct axis to[RANK_MAX], from[RANK_MAX];
	uint32_t tile = (uint32_t)hit->tile;
	uint64_t p[RANK_MAX];
	const uint64_t *words = tile_to(m, tile, to);
	int r = source_axes(m, tile, words, to, rank, shape, from, err);

	if (r < 0)
		return r;
	box_at(b, m->rank, at, p);
	if (axes_correspond(to, m->rank, from, rank))
		piece_by_axis(m->rank, to, b, p, from, rank, out);
	else
		piece_by_number(m->rank, to, b, p, from, rank, out);
	out->run = min_u64(out->run, hit->run);
	return 0;
}
