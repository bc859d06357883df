/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a virtual dataset, as its file has them. */
#ifndef SOURCE_HDF5_MAPPING_H
#define SOURCE_HDF5_MAPPING_H

#include "source/hdf5.h"

/* Fills in d->mapping; lock held.  -ENOTSUP: selections that are no regular
 * hyperslabs. */
int hdf5_mapping_read(hid_t dcpl, struct hdf5_description *d,
		      struct error *err);

#endif
