/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by path, through links into other files, which libhdf5 must not follow. */
#ifndef FORMATS_HDF5_FILE_FIND_H
#define FORMATS_HDF5_FILE_FIND_H

#include "formats/hdf5/file/place.h"

/* The library's lock must be held for both. */

/*
 * Open the object that `path` names, starting at the root of `file` (open, the
 * source's file at->file), through hard, soft and external links.  Set at->file and
 * at->object to where it is.  The caller closes *id; the file that the last external
 * link led into stays open, too, and is closed by way of H5Iget_file_id.  -ENOENT: a
 * component is missing; -ELOOP: too many links; -EIO, -ENOMEM, and errors of hdf5_open.
 */
int hdf5_find_object(struct hdf5_source *s, hid_t file, const char *path,
		     struct hdf5_place *at, hid_t *id, struct error *err);
/*
 * Read the external link `name` of an open group of `file`: *to is the file it leads to
 * and *object (malloc'ed) the object's absolute path there.  -EIO, without a sentence:
 * the link cannot be read; -ENOMEM and errors of hdf5_resolve.
 */
int hdf5_find_external(struct hdf5_source *s, hid_t group, uint32_t file,
		       const char *name, uint32_t *to, char **object,
		       struct error *err);

#endif
