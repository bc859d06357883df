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
/* ---- Fortran order ------------------------------------------------------- */

/* Has its data to be turned? */
bool npy_is_turned(const struct npy_file *f);
/* The shape of the chunks in which that is done: about a MiB, or as little as goes. */
void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk);
#define NPY_TURNED "tensorfs: from Fortran order"
struct npy_turned {
	uint32_t file;
	uint64_t pos; /* of the first element */
	const struct recode *recode;
	const struct backing *from; /* NULL, or instead of the file */
};
/* One chunk of grid `g`, which is of the array's shape: as array_ops.make. */
int npy_turn(struct handles *h, const struct npy_turned *t,
	     const struct grid *g, uint64_t chunk, void *out, size_t size,
	     struct error *err);

#endif
