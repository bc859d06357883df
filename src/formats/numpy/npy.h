/* SPDX-License-Identifier: BSD-2-Clause */
/* .npy files as tensors. */
#ifndef FORMATS_NUMPY_NPY_H
#define FORMATS_NUMPY_NPY_H

#include "formats/arrays.h"
#include "tensor/npy_read.h"

extern const struct source_ops source_npy;

/*
 * Make the array of a .npy that takes `size` bytes of `file` from `pos` on and has
 * header `f`; if `field` is not NULL, the array of that field of its elements (the
 * field is kept by s->intern).  Return 0, -EBADMSG if the data are cut off, or as
 * array_new.
 */
int npy_array(struct arrays *s, uint32_t file, uint64_t pos, uint64_t size,
	      const struct npy_file *f, const struct dtype_field *field,
	      const char *name, struct array **out, struct error *err);

/* ---- fields of structures ------------------------------------------------ */

/* Set type, field, rank and shape of *spec to those of a .npy, or of a field of its
 * elements, whose axes follow the others.  Return false if there are too many axes. */
bool npy_shape(const struct npy_file *f, const struct dtype_field *field,
	       struct array_spec *spec);
/* Set *out to how a stored element becomes a served one.  Return 0, -ENOTSUP or
 * -ENOMEM. */
int npy_recode(struct arrays *s, const struct dtype *stored,
	       const struct dtype_field *field, struct recode *out,
	       struct error *err);
/* Put a field's axes behind the `rank` axes of the file in `shape`; as a chunk,
 * they are whole.  `field` may be NULL. */
void npy_field_axes(const struct dtype_field *field, unsigned rank,
		    uint64_t *shape);
/* Publish `fields/NAME/` in directory `dir` of the array `path` for each field of
 * its elements, if these are structures.  `make` makes the array `name` of a field. */
typedef int npy_field_fn(void *ctx, const struct dtype_field *field,
			 const char *name, struct array **out,
			 struct error *err);
int npy_fields(struct arrays *s, struct tree_builder *b, uint32_t dir,
	       const char *path, const struct dtype *d, npy_field_fn *make,
	       void *ctx, struct error *err);

/* ---- Fortran order ------------------------------------------------------- */

/* Return true if the data must be transposed from Fortran order. */
bool npy_is_transposed(const struct npy_file *f);
/* Set `chunk` to the shape of the chunks that are transposed at once: about 1 MiB,
 * or less if the array is smaller. */
void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk);
#define NPY_TRANSPOSED "tensorfs: from Fortran order"
struct npy_transposed {
	uint32_t file;
	uint64_t pos;  /* of the first element, in bytes */
	unsigned rank; /* axes of the file; other axes are in an element */
	const struct recode *recode;
	const struct backing *from; /* read instead of `file`, if not NULL */
};
/* Make one chunk of grid `g`, which has the shape of the array: as array_ops.make. */
int npy_transpose(struct handles *h, const struct npy_transposed *t,
		  const struct grid *g, uint64_t chunk, void *out, size_t size,
		  struct error *err);

#endif
