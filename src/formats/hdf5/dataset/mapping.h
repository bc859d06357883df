/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a virtual dataset, as its file has them. */
#ifndef FORMATS_HDF5_DATASET_MAPPING_H
#define FORMATS_HDF5_DATASET_MAPPING_H

#include "formats/hdf5/dataset/description.h"

/* Fills in d->mapping; lock held.  -ENOTSUP: selections that are no regular
 * hyperslabs. */
int hdf5_mapping_read(hid_t dcpl, struct hdf5_description *d,
		      struct error *err);
/* The slab that is all of an array, malloc'ed: 4 x own_rank numbers. */
uint64_t *hdf5_mapping_whole(const struct hdf5_description *d);

#endif
