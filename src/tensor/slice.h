/* SPDX-License-Identifier: BSD-2-Clause */
/* NumPy's basic slicing, read from text: "10:20,:,3", "...,::-2". */
#ifndef TENSOR_SLICE_H
#define TENSOR_SLICE_H

#include <stddef.h>

#include "tensor/grid.h"

/* The selection of one axis: `count` indices start, start + step, ... */
struct slice_axis {
	uint64_t start, count;
	int64_t step; /* 1 where count < 2 */
	bool dropped; /* a single index: the result lacks the axis */
};
struct slice {
	unsigned rank; /* axes of the array */
	struct slice_axis axis[RANK_MAX];
	unsigned whole; /* axes from this one on have step 1 */
};

/*
 * Read indices, slices and one "..." separated by commas, as NumPy does: negative
 * indices count from the end, slices are clamped, axes that are not named are taken
 * whole.  Return 0; -EINVAL if the text is not such an expression; -ENOENT for an index
 * beyond the end, or more items than axes.  Lengths of axes are below 2^63.  Source:
 * NumPy's "Indexing on ndarrays", PySlice_AdjustIndices.
 */
int slice_parse(const char *text, size_t len, unsigned rank,
		const uint64_t *shape, struct slice *out);
/* Set `shape` (room for s->rank) to the shape of the result; return its rank. */
unsigned slice_shape(const struct slice *s, uint64_t *shape);
/* Return the number of elements of the result. */
uint64_t slice_elements(const struct slice *s);
/* Find the box of the array whose element *skip is element `at` (in C order) of the
 * result; the rest of the box follows it in the result. */
void slice_piece(const struct slice *s, uint64_t at, struct box *out,
		 uint64_t *skip);
/* Set *out to a box around elements [at, at + n) of the result; n > 0. */
void slice_around(const struct slice *s, uint64_t at, uint64_t n,
		  struct box *out);

#endif
