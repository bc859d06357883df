/* SPDX-License-Identifier: BSD-2-Clause */
/* .npy files as tensors. */
#ifndef SOURCE_NPY_H
#define SOURCE_NPY_H

#include "source/arrays.h"
#include "tensor/npy_read.h"

extern const struct source_ops source_npy;

/*
 * The array of a .npy that takes `size` bytes of `file` from `pos` on and begins as `f`
 * says.  -EBADMSG: it is cut off.
 */
int npy_array(struct arrays *s, uint32_t file, uint64_t pos, uint64_t size,
	      const struct npy_file *f, const char *name, struct array **out,
	      struct error *err);
/* The shape of the chunks in which an array in Fortran order is made. */
void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk);

#endif
