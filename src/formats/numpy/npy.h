/* SPDX-License-Identifier: BSD-2-Clause */
/* .npy files as tensors. */
#ifndef FORMATS_NUMPY_NPY_H
#define FORMATS_NUMPY_NPY_H

#include "formats/arrays.h"
#include "tensor/npy_read.h"

extern const struct source_ops source_npy;

/*
 * The array of a .npy that takes `size` bytes of `file` from `pos` on and begins as `f`
 * says, or (not NULL; kept by s->intern) a field of its elements.  -EBADMSG: it is cut off.
 */
int npy_array(struct arrays *s, uint32_t file, uint64_t pos, uint64_t size,
	      const struct npy_file *f, const struct dtype_field *field,
	      const char *name, struct array **out, struct error *err);

/* ---- fields of structures ------------------------------------------------ */

/* Type, field, rank and shape: those of a .npy, or of a field of its elements, whose axes
 * come behind.  False: too many axes. */
bool npy_shape(const struct npy_file *f, const struct dtype_field *field,
	       struct array_spec *spec);
/* How a stored element becomes one of these.  -ENOTSUP; -ENOMEM. */
int npy_recode(struct arrays *s, const struct dtype *stored,
	       const struct dtype_field *field, struct recode *out,
	       struct error *err);
/* Behind the axes of the file: a field's, whole. */
void npy_field_axes(const struct dtype_field *field, unsigned rank,
		    uint64_t *shape);
/* `fields/NAME/` in directory `dir`, that of the array `path`, for each field of its
 * elements, if they are structures; `make` makes the array `name` of one. */
typedef int npy_field_fn(void *ctx, const struct dtype_field *field,
			 const char *name, struct array **out,
			 struct error *err);
int npy_fields(struct arrays *s, struct tree_builder *b, uint32_t dir,
	       const char *path, const struct dtype *d, npy_field_fn *make,
	       void *ctx, struct error *err);

/* ---- Fortran order ------------------------------------------------------- */

/* Has its data to be turned? */
bool npy_is_turned(const struct npy_file *f);
/* The shape of the chunks in which that is done: about a MiB, or as little as goes. */
void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk);
#define NPY_TURNED "tensorfs: from Fortran order"
struct npy_turned {
	uint32_t file;
	uint64_t pos;  /* of the first element */
	unsigned rank; /* axes of the file; others are in an element */
	const struct recode *recode;
	const struct backing *from; /* NULL, or instead of the file */
};
/* One chunk of grid `g`, which is of the array's shape: as array_ops.make. */
int npy_turn(struct handles *h, const struct npy_turned *t,
	     const struct grid *g, uint64_t chunk, void *out, size_t size,
	     struct error *err);

#endif
