/* SPDX-License-Identifier: BSD-2-Clause */
/* Shape and chunk arithmetic: which chunk holds a byte, where in it, and how many bytes
 * follow. */
#ifndef TENSOR_GRID_H
#define TENSOR_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define RANK_MAX 32 /* as H5S_MAX_RANK of HDF5 */

/* An axis-aligned region, in elements. */
struct box {
	uint64_t start[RANK_MAX], count[RANK_MAX];
};

/* A regular grid of chunks over an array.  Chunks at the edge may overhang it. */
struct grid {
	unsigned rank;
	uint32_t elem;             /* bytes of one element */
	uint64_t shape[RANK_MAX];  /* shape of the array, in elements */
	uint64_t chunk[RANK_MAX];  /* shape of one chunk, in elements, > 0 */
	uint64_t chunks[RANK_MAX]; /* of the grid: div_up(shape, chunk) */
	uint64_t count;            /* chunks in all */
	uint64_t chunk_bytes;      /* decoded bytes of one chunk */
};

/* Set all members.  Return 0, or -EOVERFLOW when a product does not fit. */
int grid_init(struct grid *g, unsigned rank, const uint64_t *shape,
	      const uint64_t *chunk, uint32_t elem);
/* Return the number of elements of a box. grid_init checked that products of shapes
 * fit. */
uint64_t box_elements(const struct box *b, unsigned rank);
/* Set *out to the largest box that the first of the elements [skip, skip + n) of box
 * `b`, in C order, make up.  Return how many elements it has. */
uint64_t box_front(const struct box *b, unsigned rank, uint64_t skip,
		   uint64_t n, struct box *out);
/*
 * For byte `off` of box `b` laid out in C order: find the chunk that holds it, the
 * offset inside the decoded chunk, and how many bytes follow without a break both in
 * the box and in the chunk.  O(rank).
 */
void grid_run(const struct grid *g, const struct box *b, uint64_t off,
	      uint64_t *chunk, uint64_t *in_chunk, uint64_t *run);
/* Rows of a box that lie one below the other in the same chunks.  A row is the contents
 * of the innermost axes up to the first that a run does not cross. */
struct grid_rows {
	uint64_t pitch; /* bytes of a row of the box, one run or several */
	uint64_t rows;  /* rows in the same chunks, from this one on */
	uint64_t step;  /* bytes from row to row in each of these chunks */
};
/* Return true, and describe the rows, if a row begins at byte `off` of the box. */
bool grid_find_rows(const struct grid *g, const struct box *b, uint64_t off,
		    struct grid_rows *out);
/* Move `at` to the next index of a box of n[0] x n[1] x ..., the last axis first.
 * Return false at the end of the box; `at` is then all zeros again. */
bool grid_step(unsigned rank, uint64_t *at, const uint64_t *n);
/* Return how many axes of the grid of chunks end with chunk `index`. */
unsigned grid_carry(const struct grid *g, uint64_t index);
/* Set `origin` to the coordinates, in elements, of the first element of chunk `index`. */
void grid_origin(const struct grid *g, uint64_t index, uint64_t *origin);
/* Does chunk `index` overhang the array? */
bool grid_is_partial(const struct grid *g, uint64_t index);
/* Return how many decoded bytes of chunk `index` lie within the array. */
uint64_t grid_chunk_useful(const struct grid *g, uint64_t index);
/* Return how many chunks a box touches.  The box lies inside the array. */
uint64_t grid_touched(const struct grid *g, const struct box *b);

#endif
