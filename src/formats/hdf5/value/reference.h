/* SPDX-License-Identifier: BSD-2-Clause */
/* What HDF5 references mean: paths of objects, selections in words. */
#ifndef FORMATS_HDF5_VALUE_REFERENCE_H
#define FORMATS_HDF5_VALUE_REFERENCE_H

#include <hdf5.h>
#include <stdbool.h>

/* Paths of a file's objects, found when the first reference is followed. The
 * library's lock must be held for all functions. Free them before the file is
 * closed. */
struct hdf5_paths;
/* `object` is any open object of the file. NULL when out of memory. */
struct hdf5_paths *hdf5_paths_new(hid_t object);
void hdf5_paths_free(struct hdf5_paths *p);

struct hdf5_meaning {
	char *path;      /* NULL: a null reference */
	char *selection; /* of a region reference: "(0,0)-(3,4), (7,8)" */
};
/*
 * Follow a reference of `type` (H5T_REFERENCE), as H5Dread gives it.  Objects
 * without a path, and references that lead nowhere, are said so in brackets.
 * -ENOMEM.
 */
int hdf5_reference_read(struct hdf5_paths *p, hid_t type, const void *data,
			struct hdf5_meaning *out);
void hdf5_meaning_free(struct hdf5_meaning *m);

#endif
