/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the mosaic: tiles packed into words, and the arithmetic of one axis. */
#ifndef TENSOR_MOSAIC_PRIVATE_H
#define TENSOR_MOSAIC_PRIVATE_H

#include "base/number.h"
#include "base/vec.h"
#include "tensor/mosaic.h"

/*
 * One axis of a slab, in its simplest form: blocks that touch each other are
 * one block, and a single block has stride == block.  All sums and products of
 * these numbers were checked when the tile was added.
 */
struct axis {
	uint64_t start, stride, count, block;
};
#define AXIS_NONE UINT64_MAX

static inline uint64_t axis_extent(const struct axis *a)
{
	return a->count * a->block;
}
static inline uint64_t axis_end(const struct axis *a)
{
	return a->start + (a->count - 1) * a->stride + a->block;
}
/* Return true if coordinate `at` is an element of the axis; set *index to its number
 * and *inside to its distance from the start of its block. */
static inline bool axis_find(const struct axis *a, uint64_t at, uint64_t *index,
			     uint64_t *inside)
{
	uint64_t off = at - a->start, k = 0;

	if (at < a->start)
		return false;
	if (a->count > 1) {
		k = off / a->stride;
		off %= a->stride;
	}
	*index = k * a->block + off;
	*inside = off;
	return k < a->count && off < a->block;
}
/* Return the coordinate of element `index`; set *inside to its distance from the start
 * of its block. */
static inline uint64_t axis_at(const struct axis *a, uint64_t index,
			       uint64_t *inside)
{
	*inside = index % a->block;
	return a->start + index / a->block * a->stride + *inside;
}
/* Return the first coordinate of the axis that is not below `at`, or AXIS_NONE. */
static inline uint64_t axis_from(const struct axis *a, uint64_t at)
{
	uint64_t off = at - a->start, k = 0;

	if (at <= a->start)
		return a->start;
	if (a->count > 1) {
		k = off / a->stride;
		off %= a->stride;
	}
	if (k < a->count && off < a->block)
		return at;
	return k + 1 < a->count ? a->start + (k + 1) * a->stride : AXIS_NONE;
}

/* A tile: two words for an axis of one block (start, block), four for others (start,
 * stride, count, block); first the axes of `to`, then those of `from`. */
struct tile_head {
	uint64_t at; /* index of its first word */
	/* bit i: axis i of `to` has 4 words; 32 + i: of `from` */
	uint64_t strided;
	uint32_t part;
	uint8_t rank; /* axes of `from`; 0 if `all` */
	bool all;
};

struct mosaic {
	unsigned rank;
	uint32_t added; /* calls of mosaic_add */
	bool strided;   /* some tile is not a box */
	vec(struct tile_head) tiles;
	vec(uint64_t) words;
	/* The index: a tree over `order`, which holds the tiles' numbers. */
	uint32_t leaves;
	uint32_t *order;
	uint32_t *highest; /* for each node, the highest tile number below it */
	uint64_t *bounds;  /* for each node, [begin, end) along each axis */
	/* The blocks, in order, each as the number of a tile; bit i of `divided`:
	 * blocks divide axis i. */
	uint32_t nblocks, divided;
	uint32_t *blocks;
	uint64_t shape[];
};

static inline const uint64_t *axis_unpack(const uint64_t *w, bool strided,
					  struct axis *a)
{
	a->start = w[0];
	if (strided) {
		a->stride = w[1];
		a->count = w[2];
		a->block = w[3];
		return w + 4;
	}
	a->stride = a->block = w[1];
	a->count = 1;
	return w + 2;
}
static inline const uint64_t *tile_words(const struct mosaic *m,
					 const struct tile_head *h)
{
	/* Tiles of scalars have no words. */
	return h->at < m->words.n ? m->words.at + h->at : NULL;
}
/* Unpack the axes of `to`; return the words of `from`. */
static inline const uint64_t *tile_to(const struct mosaic *m, uint32_t tile,
				      struct axis *to)
{
	const struct tile_head *h = &m->tiles.at[tile];
	const uint64_t *w = tile_words(m, h);

	for (unsigned i = 0; i < m->rank; i++)
		w = axis_unpack(w, h->strided >> i & 1, &to[i]);
	return w;
}
static inline void tile_from(const struct mosaic *m, uint32_t tile,
			     const uint64_t *w, struct axis *from)
{
	const struct tile_head *h = &m->tiles.at[tile];

	for (unsigned i = 0; i < h->rank; i++)
		w = axis_unpack(w, h->strided >> (32 + i) & 1, &from[i]);
}
/* Set `p` to the coordinates of element `at` (in C order) of a box. */
static inline void box_at(const struct box *b, unsigned rank, uint64_t at,
			  uint64_t *p)
{
	for (unsigned i = rank; i-- > 0;) {
		p[i] = b->start[i] + at % b->count[i];
		at /= b->count[i];
	}
}

/* Make the tree and the list of blocks once all tiles were added.  Return 0 or -ENOMEM. */
int mosaic_index(struct mosaic *m, struct error *err);
int mosaic_blocks_make(struct mosaic *m, struct error *err);

#endif
