/* SPDX-License-Identifier: BSD-2-Clause */
/* The HDF5 format, as the registry knows it. */
#ifndef FORMATS_HDF5_HDF5_H
#define FORMATS_HDF5_HDF5_H

#include "formats/source.h"

/* Return true if `b` is an HDF5 file behind a user block of SOURCE_HEAD bytes or more.
 * Reads 8 bytes at each power of two. */
bool hdf5_is_behind(const struct backing *b);

extern const struct source_ops source_hdf5;

/* Return `s` as an HDF5 source (formats/hdf5/file/source.h), NULL if it is another. */
struct hdf5_source;
struct hdf5_source *hdf5_source_of(struct source *s);

#endif
