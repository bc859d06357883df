/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the HDF5 sink share. */
#ifndef PACK_HDF5_SINK_H
#define PACK_HDF5_SINK_H

#include <hdf5.h>

#include "base/vec.h"
#include "pack/hdf5/sample.h"
#include "pack/hdf5/sample_labels.h"

/* Check a path given as --dataset.  Return 0 or -EINVAL. */
int hdf5_check_path(const char *path, struct error *err);
/* Paths of the datasets of a pack. */
struct hdf5_names {
	char *data;                     /* "data", "entry/images" */
	char *names, *labels, *classes; /* in the same group */
};
/* Set the paths from --dataset (NULL: "data").  Return -EINVAL if it is not a valid path,
 * or is the path of another dataset of the pack.  Freed with hdf5_names_free. */
int hdf5_names_init(struct hdf5_names *n, const char *dataset,
		    struct error *err);
void hdf5_names_free(struct hdf5_names *n);

/* The rows of the tensor. */
struct hdf5_rows {
	const struct scan *scan;
	vec(uint64_t) entry; /* the entry of the scan for each row */
};
/* Write the datasets beside the tensor: names of files, and labels, unless `labels` is
 * NULL.  The file is open, and the library's lock is held. */
int hdf5_companions_write(hid_t file, const struct hdf5_names *n,
			  const struct hdf5_rows *rows,
			  const struct labels *labels, struct error *err);
/* Write an attribute that is a number.  The library's lock is held. */
int hdf5_number_attribute(hid_t of, const char *name, uint32_t value,
			  struct error *err);

#endif
