/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements in memory: what names and sizes of files depend on. */
#ifndef TENSOR_READ_H
#define TENSOR_READ_H

#include "tensor/tensor.h"

/* `n` bytes of box b in C order as they are served, from byte `off` of it on; all of
 * them or an error.  Blocks. */
int tensor_read(struct tensor *t, const struct box *b, uint64_t off, void *to,
		size_t n, struct pinner *p, struct error *err);

#endif
