/* SPDX-License-Identifier: BSD-2-Clause */
/* NumPy's basic slicing, as text: "10:20,:,3", "...,::-2". */
#ifndef TENSOR_SLICE_H
#define TENSOR_SLICE_H

#include <stddef.h>

#include "tensor/grid.h"

/* What is taken of one axis: indices start, start + step, ...: count of them. */
struct slice_axis {
	uint64_t start, count;
	int64_t step; /* 1 where count < 2 */
	bool dropped; /* a single index: the result lacks the axis */
};
struct slice {
	unsigned rank; /* of the array */
	struct slice_axis axis[RANK_MAX];
	unsigned whole; /* axes from here on are taken in steps of 1 */
};

/*
 * Indices, slices and one "..." separated by commas, as NumPy reads them: negative ones
 * count from the end, slices are clamped, axes that are not named are whole.  -EINVAL: it is
 * none of that; -ENOENT: an index beyond the end, or more of them than axes.  Shapes are
 * below 2^63.  Source: NumPy's "Indexing on ndarrays", PySlice_AdjustIndices.
 */
int slice_parse(const char *text, size_t len, unsigned rank,
		const uint64_t *shape, struct slice *out);
/* The result's shape (room for s->rank): its rank. */
unsigned slice_shape(const struct slice *s, uint64_t *shape);
uint64_t slice_elements(const struct slice *s);
/* Element `at` (in C order) of the result is element *skip of this box of the array, and
 * the rest of the box follows it in the result. */
void slice_piece(const struct slice *s, uint64_t at, struct box *out,
		 uint64_t *skip);
/* The smallest box that has elements [at, at + n) of the result; n > 0. */
void slice_around(const struct slice *s, uint64_t at, uint64_t n,
		  struct box *out);

#endif
