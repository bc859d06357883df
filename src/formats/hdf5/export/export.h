/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the front of array.h5 and merged.h5: an HDF5 file without its data. */
#ifndef FORMATS_HDF5_EXPORT_EXPORT_H
#define FORMATS_HDF5_EXPORT_EXPORT_H

#include "formats/hdf5/file/place.h"

/* Return true if the tensor's elements are data of such a file, not part of its front. */
bool hdf5_has_data(const struct hdf5_tensor *h);

/*
 * Read the values of text datasets that belong into the front, for the process that makes
 * it: *text is malloc'ed.  `of` is the tensor of array.h5, NULL for merged.h5.  Blocks.
 */
int hdf5_texts_read(struct hdf5_source *s, const struct hdf5_tensor *of,
		    char **text, size_t *len, struct error *err);
/*
 * Make the front (views/monolith.h; malloc'ed, *len bytes), in this process: of one
 * tensor, with the attributes of the groups around it and its flags; or (`of` NULL) of
 * everything in the mount.  Its parts are the data of those tensors, in the order of
 * items, for which hdf5_has_data returns true.  `text` is what hdf5_texts_read has read;
 * at->object is not used.  Takes the library's lock; blocks.
 */
char *hdf5_monolith_here(const struct hdf5_place *at,
			 const struct hdf5_tensor *of, const void *text,
			 size_t text_len, size_t *len, struct error *err);

#endif
