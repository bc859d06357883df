/* SPDX-License-Identifier: BSD-2-Clause */
/* A group's directory: its attributes; the root's merged.h5. */
#ifndef FORMATS_HDF5_GROUP_H
#define FORMATS_HDF5_GROUP_H

#include "formats/hdf5/file/place.h"
#include "tree/files.h"

/* The attributes of any object as the value of an xattr (see files.xattr): what is
 * longer than a value may be is left out, and said so. */
ssize_t hdf5_group_attributes(const struct hdf5_place *at, char *buf, size_t n);

/* Files whose xattr "attrs" is the group's attributes as a JSON object; none, or
 * merged.h5, which is listed if views= says so.  `object`, the group's path in the
 * file, is borrowed from the source.  NULL: no memory. */
struct files *hdf5_group_files_new(struct hdf5_source *s, uint32_t file,
				   const char *object, int64_t mtime,
				   bool merged);

#endif
