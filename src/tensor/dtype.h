/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types: kind, size, byte order; their NumPy spelling. */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype_kind {
	DTYPE_INT, /* two's complement, 1 2 4 8 bytes */
	DTYPE_UINT,
	DTYPE_FLOAT,   /* IEEE 754 binary16, 32, 64 */
	DTYPE_COMPLEX, /* two floats (r, i), 8 or 16 bytes */
	DTYPE_BOOL,    /* one byte, 0 or 1 */
	DTYPE_STRING,  /* text, shown one value a line; size = stored bytes */
	DTYPE_OTHER    /* not shown */
};
struct dtype {
	enum dtype_kind kind;
	uint32_t size;   /* bytes of one element */
	bool big_endian; /* as served; false where it does not matter */
	bool vlen;       /* DTYPE_STRING of variable length */
	char text[64];   /* DTYPE_OTHER and strings: what the file says it is */
};
/* Width of the numbers inside an element that byte-swapping reverses. */
unsigned dtype_swap_width(const struct dtype *d);
/* NumPy's descr, "<f4", "|b1"; strings "str"; others d->text. */
void dtype_descr(const struct dtype *d, char *buf, size_t n);
/* For people: "float32", "complex64", "bool", "string". */
void dtype_name(const struct dtype *d, char *buf, size_t n);
bool dtype_equal(const struct dtype *a, const struct dtype *b);
/* A .npy v1 header as np.save writes it; bytes written (a multiple of 64), 0
 * when it does not fit in n.  Source: numpy/lib/format.py 1.24. */
size_t dtype_npy_header(const struct dtype *d, unsigned rank,
			const uint64_t *shape, void *buf, size_t n);

/* A shape as NumPy prints it: "(3, 4)", "(5,)", "()". */
void dtype_shape_text(const uint64_t *shape, unsigned rank, char *buf,
		      size_t n);

#endif
