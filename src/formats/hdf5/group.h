/* SPDX-License-Identifier: BSD-2-Clause */
/* A group's directory: its attributes; the root's merged.h5. */
#ifndef FORMATS_HDF5_GROUP_H
#define FORMATS_HDF5_GROUP_H

#include "formats/hdf5/file/place.h"
#include "tree/files.h"

/* Return the attributes of any object as the value of an xattr (see files.xattr).
 * Attributes that do not fit are left out, and the value says so. */
ssize_t hdf5_group_attributes(const struct hdf5_place *at, char *buf, size_t n);

/* Make the files of a group. Their xattr "attrs" is the group's attributes as a JSON
 * object. If `merged`, they have merged.h5, which is listed if views= names it.
 * `object`, the group's path in the file, is borrowed from the source. NULL when out
 * of memory. */
struct files *hdf5_group_files_new(struct hdf5_source *s, uint32_t file,
				   const char *object, int64_t mtime,
				   bool merged);

#endif
