/* SPDX-License-Identifier: BSD-2-Clause */
/* Which part covers an element: regular hyperslabs laid over an array. */
#ifndef TENSOR_MOSAIC_H
#define TENSOR_MOSAIC_H

#include <stddef.h>

#include "base/error.h"
#include "tensor/grid.h"

/* A regular hyperslab as in HDF5: along each axis `count` blocks of `block`
 * elements, the first at `start`, their beginnings `stride` apart. */
struct slab {
	uint64_t start[RANK_MAX], stride[RANK_MAX];
	uint64_t count[RANK_MAX], block[RANK_MAX];
};
/*
 * One mapping: the elements of `to` are those of `from`, in C order each.  The
 * source may have another rank.  `all`: the whole source, whatever its shape
 * turns out to be (`rank` and `from` are not set then).
 */
struct tile {
	uint32_t part;
	bool all;
	unsigned rank; /* of the source */
	struct slab to, from;
};

struct mosaic;
int mosaic_new(struct mosaic **out, unsigned rank, const uint64_t *shape,
	       struct error *err);
/* Lay one more tile over what is there: where tiles overlap, the later one
 * wins.  Tiles without elements are ignored.  -EBADMSG: outside the array,
 * blocks that overlap (stride < block), or numbers of elements that differ; the
 * sentence says "mapping N".  -ENOMEM. */
int mosaic_add(struct mosaic *m, const struct tile *t, struct error *err);
/* No more tiles: build the index.  Immutable afterwards. */
int mosaic_finish(struct mosaic *m, struct error *err);
void mosaic_free(struct mosaic *m);

uint32_t mosaic_count(const struct mosaic *m);
/* Tile i as it was added (not counting the ignored ones). */
void mosaic_tile(const struct mosaic *m, uint32_t i, struct tile *out);
/* Bytes that it takes. */
size_t mosaic_bytes(const struct mosaic *m);

/*
 * What covers element `at` (in C order) of box `b`, and how many elements of
 * the box follow in C order that the same tile (or gap) covers: 1 at least,
 * and as many as is easily said; whole rows of the box where the tile covers
 * them.  Pure; O(log tiles) where tiles are boxes that do not overlap.
 */
struct mosaic_hit {
	int64_t tile; /* -1: a gap */
	uint32_t part;
	uint64_t run;
};
void mosaic_find(const struct mosaic *m, const struct box *b, uint64_t at,
		 struct mosaic_hit *out);
/*
 * Where these elements are in the source: elements [skip, skip + run) of the
 * box `from` (in C order) are elements [at, at + run) of b.  `run` may be less
 * than the hit's.  `rank` and `shape` are those of the source's dataset.
 * -EIO, with a sentence: the tile does not fit into that shape.
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
 * Blocks: the distinct boxes that tiles cover, sorted by start, then by count.
 * None when some tile is no box (it has gaps).  They divide an axis when one
 * of them does not cover it wholly.
 */
uint32_t mosaic_blocks(const struct mosaic *m);
void mosaic_block(const struct mosaic *m, uint32_t k, struct box *out);
/* The block with this box, or -ENOENT. */
int mosaic_block_find(const struct mosaic *m, const struct box *b, uint32_t *k);
bool mosaic_divides(const struct mosaic *m, unsigned axis);

#endif
