/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a virtual dataset, as its file has them. */
#ifndef FORMATS_HDF5_DATASET_MAPPING_H
#define FORMATS_HDF5_DATASET_MAPPING_H

#include "formats/hdf5/dataset/description.h"

/* Read the mappings of a virtual dataset into d->mapping.  The library's lock must be
 * held.  -ENOTSUP: a selection is not a regular hyperslab; -EIO, -ENOMEM.  The caller
 * calls hdf5_description_free, also after an error. */
int hdf5_mapping_read(hid_t dcpl, struct hdf5_description *d,
		      struct error *err);
/* Return the slab that selects all of a dataset (malloc'ed, 4 x own_rank numbers), or
 * NULL if out of memory. */
uint64_t *hdf5_mapping_whole(const struct hdf5_description *d);

#endif
