/* SPDX-License-Identifier: BSD-2-Clause */
/* Read the header of a .npy file. */
#ifndef TENSOR_NPY_READ_H
#define TENSOR_NPY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/* Longest header in bytes; longer ones are refused.  NumPy itself refuses more than 10
 * 000 bytes unless it is told otherwise; long headers are those of structures. */
#define NPY_HEADER_MOST (UINT32_C(1) << 20)

struct npy_file {
	struct dtype dtype; /* as dtype_parse_stored, or a structure */
	bool fortran;       /* the first axis is innermost */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t elements;
	uint64_t bytes; /* of all elements; data + bytes < 2^63 */
	uint64_t data;  /* offset of the elements in the file */
};
/*
 * Read a header from `n` bytes of the beginning of a file: the whole file, or at least
 * NPY_HEADER_MOST bytes.  Versions 1, 2 and 3 (numpy/lib/format.py 1.24) are known; the
 * dictionary's keys may be in any order, numbers may have the "L" of Python 2.  `in`
 * owns the fields of structures; if it is NULL, structures and dates are refused.
 *
 * Return 0; -ENOMEM; -EBADMSG if it is not a .npy file, or damaged; -ENOTSUP for a type
 * that is not supported, also as that of a field.  The sentence does not name the file.
 */
int npy_read(const void *data, size_t n, struct intern *in,
	     struct npy_file *out, struct error *err);

#endif
