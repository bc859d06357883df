/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of HDF5 datasets: where they are stored, and reading them by libhdf5. */
#ifndef FORMATS_HDF5_CHUNK_CHUNK_H
#define FORMATS_HDF5_CHUNK_CHUNK_H

#include "formats/hdf5/dataset/description.h"
#include "tensor/tensor.h"

/* The functions of this header take the library's lock, but for hdf5_fetch_check, and
 * block.  worker/call.h has their counterparts that ask a worker process. */

/* Set out[0..n) to the locations of chunks [first, first + n) of the grid.  *written is
 * the number of chunks that the index counts, plus 1; 0 means not yet known, and it is
 * set then. */
int hdf5_locate_here(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err);
/* tensor_ops.list.  *count is set to the number of chunks that the index counts, or
 * UINT64_MAX if that is not known. */
int hdf5_list_here(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err);
/* Read one chunk of the grid by libhdf5 into `size` bytes at `out`: as stored, or (`as`
 * not NULL) converted to a served type; `member` as in hdf5_values_here. */
int hdf5_fetch_here(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err);
/* Check that all chunks of box `b` decode to their full size: H5Dread does not look, and
 * would read what lies behind a short one.  `dset` is open and `d` is its description.
 * The library's lock must be held. */
int hdf5_fetch_check(const struct hdf5_place *at, hid_t dset,
		     const struct hdf5_description *d, const struct box *b,
		     struct error *err);

#endif
