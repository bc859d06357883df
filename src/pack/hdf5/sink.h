/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the HDF5 sink: what its files share. */
#ifndef PACK_HDF5_SINK_H
#define PACK_HDF5_SINK_H

#include <hdf5.h>

#include "base/vec.h"
#include "pack/hdf5/sample.h"
#include "pack/hdf5/sample_labels.h"

/* Can --dataset be that?  -EINVAL. */
int hdf5_check_path(const char *path, struct error *err);
/* Where the datasets of a pack are. */
struct hdf5_names {
	char *data;                     /* "data", "entry/images" */
	char *names, *labels, *classes; /* beside it */
};
/* From --dataset (NULL: "data").  -EINVAL: no path, or one that is taken. */
int hdf5_names_init(struct hdf5_names *n, const char *dataset,
		    struct error *err);
void hdf5_names_free(struct hdf5_names *n);

/* The rows that a tensor has. */
struct hdf5_rows {
	const struct scan *scan;
	vec(uint64_t) entry; /* of the scan, a row each */
};
/* What goes beside the tensor: names of files, and labels (may be NULL).  The file is
 * open, the library's lock held. */
int hdf5_companions_write(hid_t file, const struct hdf5_names *n,
			  const struct hdf5_rows *rows,
			  const struct labels *labels, struct error *err);
/* An attribute that is a number. */
int hdf5_number_attribute(hid_t of, const char *name, uint32_t value,
			  struct error *err);

#endif
