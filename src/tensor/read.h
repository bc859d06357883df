/* SPDX-License-Identifier: BSD-2-Clause */
/* Read elements into memory, for code whose names and sizes of files depend on them. */
#ifndef TENSOR_READ_H
#define TENSOR_READ_H

#include "tensor/tensor.h"

/* Read `n` bytes of box `b` as they are served, in C order, from byte `off` of the box
 * on.  All of them are read, or an error is returned.  Blocks. */
int tensor_read(struct tensor *t, const struct box *b, uint64_t off, void *to,
		size_t n, struct pinner *p, struct error *err);

#endif
