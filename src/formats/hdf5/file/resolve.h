/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of other files in an HDF5 file: which file they mean. */
#ifndef FORMATS_HDF5_FILE_RESOLVE_H
#define FORMATS_HDF5_FILE_RESOLVE_H

#include "formats/hdf5/file/source.h"

/*
 * Set *file to the file that `name`, found in file `from`, means.  Tried in turn: `name`
 * itself if it is absolute; beside `from`; in the directories of the prefixes; for an
 * absolute name that does not exist its last two components, then its last one, beside
 * `from`; beside the file behind a symlink.  The working directory is never tried.  If
 * no file is found, *file is the first of these places.  -ENOMEM.
 */
enum hdf5_prefix { HDF5_PREFIX_VDS, HDF5_PREFIX_LINK, HDF5_PREFIX_RAW };
int hdf5_resolve(struct hdf5_source *s, uint32_t from, const char *name,
		 enum hdf5_prefix kind, uint32_t *file, struct error *err);
/* Return the part of a path that holds its last `n` (> 0) components, all of it if it has
 * fewer. */
const char *hdf5_last_components(const char *name, unsigned n);
/*
 * hdf5_resolve for a file that is a member of an archive (file/inside.c).  Return 1 if
 * there is no such member; *file is then a missing row of the table of files.  -ENOMEM;
 * -EFBIG, -ENOTSUP: the member is compressed and cannot be kept in memory.
 */
int hdf5_inside_resolve(struct hdf5_source *s, uint32_t from, const char *name,
			uint32_t *file, struct error *err);
/* Return a name by which hdf5_resolve finds `file` from any other file (malloc'ed), or
 * NULL when out of memory. */
char *hdf5_inside_name(struct hdf5_source *s, uint32_t file);
/* Return the row of the member that was copied to memory, UINT32_MAX if it was not. */
uint32_t hdf5_inside_kept(const struct hdf5_source *s, uint64_t member);
/* Remember that `member` was copied to memory as row `file`.  -ENOMEM. */
int hdf5_inside_keep(struct hdf5_source *s, uint64_t member, uint32_t file);

#endif
