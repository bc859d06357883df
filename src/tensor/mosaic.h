/* SPDX-License-Identifier: BSD-2-Clause */
/* Which part covers an element: regular hyperslabs laid over an array. */
#ifndef TENSOR_MOSAIC_H
#define TENSOR_MOSAIC_H

#include <stddef.h>

#include "base/error.h"
#include "tensor/grid.h"

/* A regular hyperslab as in HDF5: along each axis `count` blocks of `block` elements,
 * the first at `start`, the starts of two neighbours `stride` apart. */
struct slab {
	uint64_t start[RANK_MAX], stride[RANK_MAX];
	uint64_t count[RANK_MAX], block[RANK_MAX];
};
/*
 * One mapping: the elements of `to` are those of `from`, each side in C order.  The
 * source may have another rank.  With `all`, the source is a whole dataset, whatever
 * its shape turns out to be (`rank` and `from` are not set then).
 */
struct tile {
	uint32_t part;
	bool all;
	unsigned rank; /* axes of the source */
	struct slab to, from;
};

struct mosaic;
/* Make a mosaic over an array of this shape, without tiles.  Return 0; -EBADMSG for too many
 * axes or elements; -ENOMEM. */
int mosaic_new(struct mosaic **out, unsigned rank, const uint64_t *shape,
	       struct error *err);
/* Lay one more tile over the existing ones: where tiles overlap, the later one wins.
 * Tiles without elements are ignored.  Return 0; -ENOMEM; -EBADMSG, with a sentence
 * that begins with "mapping N", if the tile leaves the array, if its blocks overlap
 * (stride < block), or if its sides have different numbers of elements. */
int mosaic_add(struct mosaic *m, const struct tile *t, struct error *err);
/* Build the index once all tiles were added.  The mosaic does not change afterwards, so
 * threads may share it.  Return 0 or -ENOMEM. */
int mosaic_finish(struct mosaic *m, struct error *err);
/* Free a mosaic, which may be NULL. */
void mosaic_free(struct mosaic *m);

/* Return the number of tiles, ignored ones not counted. */
uint32_t mosaic_count(const struct mosaic *m);
/* Set *out to tile `i` in the order of adding, ignored ones not counted. */
void mosaic_tile(const struct mosaic *m, uint32_t i, struct tile *out);
/* Return the bytes of memory that the mosaic takes. */
size_t mosaic_bytes(const struct mosaic *m);

/*
 * Find what covers element `at` (in C order) of box `b`, and how many elements of the
 * box from there on, in C order, the same tile (or gap) covers: at least 1, and as many
 * as are cheap to find, whole rows of the box where the tile covers them.  Pure; O(log
 * tiles) where tiles are boxes that do not overlap.
 */
struct mosaic_hit {
	int64_t tile; /* number of the tile; -1: a gap */
	uint32_t part;
	uint64_t run;
};
void mosaic_find(const struct mosaic *m, const struct box *b, uint64_t at,
		 struct mosaic_hit *out);
/*
 * Find where the elements of a hit are in the source: elements [skip, skip + run) of
 * the box `from` (in C order) are elements [at, at + run) of `b`.  `run` may be less
 * than the hit's.  `rank` and `shape` are those of the source's dataset.  Return 0, or
 * -EIO with a sentence if the tile does not fit into that shape.
 */
struct mosaic_piece {
	struct box from;
	uint64_t skip, run;
};
int mosaic_piece(const struct mosaic *m, const struct mosaic_hit *hit,
		 const struct box *b, uint64_t at, unsigned rank,
		 const uint64_t *shape, struct mosaic_piece *out,
		 struct error *err);

/*
 * Blocks are the distinct boxes that tiles cover, sorted by start, then by count.
 * There are no blocks when some tile is not a box (has gaps).  Blocks divide an axis
 * when one of them does not cover the axis wholly.
 */
uint32_t mosaic_blocks(const struct mosaic *m);
void mosaic_block(const struct mosaic *m, uint32_t k, struct box *out);
/* Set *k to the block with exactly this box.  Return 0 or -ENOENT. */
int mosaic_block_find(const struct mosaic *m, const struct box *b, uint32_t *k);
bool mosaic_divides(const struct mosaic *m, unsigned axis);

#endif
