/* SPDX-License-Identifier: BSD-2-Clause */
/* Boxes from one array in memory to another. */
#ifndef BASE_COPIES_H
#define BASE_COPIES_H

#include <stddef.h>

/* An axis of a box: how many, and bytes from one to the next on either side. */
struct copy_axis {
	size_t n, out, in;
};
#define COPY_AXES_MAX 32

/* `rows` runs of `len` bytes.  `in` and `out` do not overlap, nor do runs of
 * `out`. */
void copy_rows(void *out, size_t out_step, const void *in, size_t in_step,
	       size_t rows, size_t len);
/* A box of elements of `len` bytes; axes are in any order.  As above. */
void copy_box(void *out, const void *in, const struct copy_axis *axes,
	      unsigned rank, size_t len);

#endif
