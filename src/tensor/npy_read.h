/* SPDX-License-Identifier: BSD-2-Clause */
/* What a .npy file says it is. */
#ifndef TENSOR_NPY_READ_H
#define TENSOR_NPY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/* Longer headers are refused.  NumPy itself reads none of more than 10 000 bytes
 * unless it is told to; long ones are those of structures. */
#define NPY_HEADER_MOST (UINT32_C(1) << 20)

struct npy_file {
	struct dtype dtype; /* that dtype_parse_stored knows, or a structure */
	bool fortran;       /* elements lie with the first axis innermost */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t elements;
	uint64_t bytes; /* of all elements; fits in 63 bits with `data` */
	uint64_t data;  /* where they begin */
};
/*
 * `n` bytes from the beginning of a file, all of it or at least NPY_HEADER_MOST.
 * Versions 1, 2 and 3 (numpy/lib/format.py 1.24), the dictionary with its keys in any
 * order, numbers with the "L" of Python 2.  `in` keeps the fields of structures; NULL:
 * these are refused, and so are dates.  -EBADMSG: it is no .npy file, or damaged; -ENOTSUP: a
 * type that is not supported, also as a field.  The sentence names no file.
 */
int npy_read(const void *data, size_t n, struct intern *in,
	     struct npy_file *out, struct error *err);

#endif
