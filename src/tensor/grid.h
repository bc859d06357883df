/* SPDX-License-Identifier: BSD-2-Clause */
/* Shape and chunk arithmetic: which bytes of which chunk, and for how long. */
#ifndef TENSOR_GRID_H
#define TENSOR_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define RANK_MAX 32 /* H5S_MAX_RANK */

/* An axis-aligned region, in elements. */
struct box {
	uint64_t start[RANK_MAX], count[RANK_MAX];
};

/* A regular grid of chunks over an array; edge chunks overhang. */
struct grid {
	unsigned rank;
	uint32_t elem;             /* bytes of one element */
	uint64_t shape[RANK_MAX];  /* of the array, in elements */
	uint64_t chunk[RANK_MAX];  /* of one chunk, > 0 */
	uint64_t chunks[RANK_MAX]; /* of the grid: div_up(shape, chunk) */
	uint64_t count;            /* chunks in all */
	uint64_t chunk_bytes;      /* decoded bytes of one chunk */
};

/* Compute the derived members; -EOVERFLOW when a product does not fit. */
int grid_init(struct grid *g, unsigned rank, const uint64_t *shape,
	      const uint64_t *chunk, uint32_t elem);
/* Elements of a box; shape products were checked by grid_init. */
uint64_t box_elements(const struct box *b, unsigned rank);
/* The first of elements [skip, skip + n) of a box, in C order, that are a box
 * themselves: the largest such.  Returns how many these are. */
uint64_t box_front(const struct box *b, unsigned rank, uint64_t skip,
		   uint64_t n, struct box *out);
/*
 * For byte `off` of box `b` laid out in C order: the chunk that holds it, the
 * offset inside the decoded chunk, and how many bytes follow without a break
 * both in the box and in the chunk.  O(rank).
 */
void grid_run(const struct grid *g, const struct box *b, uint64_t off,
	      uint64_t *chunk, uint64_t *in_chunk, uint64_t *run);
/* Rows of a box that lie one below the other in the same chunks. */
struct grid_rows {
	uint64_t pitch; /* bytes of a row of the box: one run or several */
	uint64_t rows;  /* how many, from this one on, are in the same chunks */
	uint64_t step;  /* bytes from row to row in each of these */
};
/* Does a row begin at byte `off` of the box?  A row is what runs end in: all of
 * the innermost axes that a run does not get across. */
bool grid_find_rows(const struct grid *g, const struct box *b, uint64_t off,
		    struct grid_rows *out);
/* The next index of a box of n[0] x n[1] x ..., the last axis first; false: that was all,
 * and it is zeros again. */
bool grid_step(unsigned rank, uint64_t *at, const uint64_t *n);
/* How many axes of the grid of chunks come to their end with chunk `index`. */
unsigned grid_carry(const struct grid *g, uint64_t index);
/* Coordinates (in elements) of chunk `index`'s first element. */
void grid_origin(const struct grid *g, uint64_t index, uint64_t *origin);
/* True when chunk `index` overhangs the array. */
bool grid_is_partial(const struct grid *g, uint64_t index);
/* Decoded bytes of chunk `index` that lie within the array. */
uint64_t grid_chunk_useful(const struct grid *g, uint64_t index);
/* Chunks that a box touches (saturating). */
uint64_t grid_touched(const struct grid *g, const struct box *b);

#endif
