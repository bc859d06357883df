/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors that are read from HDF5 files, made from descriptions of datasets. */
#ifndef FORMATS_HDF5_LAYOUT_TENSOR_H
#define FORMATS_HDF5_LAYOUT_TENSOR_H

#include "formats/hdf5/dataset/description.h"
#include "tensor/tensor.h"

/*
 * Make the tensor of a dataset from its description, or (`d` NULL) one that is only
 * listed, with `why` it is not shown; `name` is for sentences.  Sources of a virtual
 * dataset are looked at only if its extent depends on them.  The library's lock must not
 * be held.  NULL when out of memory.
 */
struct hdf5_tensor *hdf5_tensor_new(const struct hdf5_place *at,
				    const char *name,
				    const struct hdf5_description *d,
				    const struct error *why);
/* Make the tensor of a virtual dataset that a part of `outer` is mapped from; NULL with a
 * sentence. */
struct hdf5_tensor *hdf5_tensor_nested(struct hdf5_tensor *outer,
				       const struct hdf5_place *at,
				       const struct hdf5_description *d,
				       struct error *err);
/* Make the tensor of one field of a compound dataset: `of` and its description `d`, the
 * field `f` as stored (offsets count from the element's first byte), its served type, and
 * its `path` like "a" or "a/b".  NULL with a sentence. */
struct hdf5_tensor *hdf5_tensor_field(const struct hdf5_tensor *of,
				      const struct hdf5_description *d,
				      const struct dtype_field *f,
				      const struct dtype *served,
				      const char *path, struct error *err);
/* Make the layout of part `p` of `h` from the part's description (layout/layout.c). */
int hdf5_layout_new(struct hdf5_tensor *h, uint32_t p,
		    const struct hdf5_description *d, struct layout **out,
		    struct error *err);
/* Set *out to the fill value as served, kept by the source.  Return 1 if it is not a
 * simple pattern. */
int hdf5_fill_new(struct hdf5_source *s, const struct hdf5_description *d,
		  const struct recode *recode, const struct dtype *served,
		  struct fill *out, struct error *err);
/* Set parts and mosaic of a virtual dataset: t.parts, t.nparts, t.mosaic of `h`.  `shape`
 * is that of the description; axes whose length depends on the sources are corrected in
 * it (layout/virtual.c). */
int hdf5_virtual_new(struct hdf5_tensor *h, const struct hdf5_description *d,
		     uint64_t *shape, struct error *err);

/* Operations of a tensor that is read from HDF5.  The library's lock must not be held. */
extern const struct tensor_ops hdf5_tensor_ops;

#endif
