/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy boxes of elements from one array in memory to another. */
#ifndef BASE_COPIES_H
#define BASE_COPIES_H

#include <stddef.h>

/* An axis of a box: its number of elements, and the bytes from one to the next on either
 * side. */
struct copy_axis {
	size_t n, out, in;
};
#define COPY_AXES_MAX 32

/* Copy `rows` runs of `len` bytes; the steps are in bytes.  `in` and `out` must not
 * overlap, nor may runs of `out`. */
void copy_rows(void *out, size_t out_step, const void *in, size_t in_step,
	       size_t rows, size_t len);
/* Copy a box of elements of `len` bytes, at most COPY_AXES_MAX axes in any order.  Again
 * `in` and `out` must not overlap. */
void copy_box(void *out, const void *in, const struct copy_axis *axes,
	      unsigned rank, size_t len);

#endif
