/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of HDF5 objects that are not NumPy arrays: text, sequences, attributes. */
#ifndef FORMATS_HDF5_VALUE_VALUE_H
#define FORMATS_HDF5_VALUE_VALUE_H

#include "formats/hdf5/file/place.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/* The functions of this header take the library's lock and block.  worker/call.h has
 * their counterparts that ask a worker process. */

/*
 * Call `put` once for each element of a box of the dataset, in C order; axes of array
 * types (those around the member and in it, too) are axes of the box.  A STRING is put
 * as its bytes; RAGGED as the bytes of its elements, converted to `as->fields[0].type`;
 * TEXT as a line of JSON (a reference: the path it means).  `as` is the tensor's served
 * type; `member` (may be NULL) is the path of a compound's member, "a" or "a/b".  -EIO if
 * the dataset's type or shape does not fit.
 */
typedef void hdf5_put(void *ctx, const char *s, size_t len);
int hdf5_values_here(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err);
/* Return the attributes of a group or dataset as a JSON object (malloc'ed text). */
char *hdf5_attributes_here(const struct hdf5_place *at, struct error *err);
/* Return, for a dataset, what info.json has besides its numbers (tensor_ops.about); for
 * a group, its attributes.  Malloc'ed text. */
char *hdf5_about_here(const struct hdf5_place *at, struct error *err);

/* Read labels from an attribute of an object; `called` names it in sentences.  -ENOENT:
 * there is no such attribute.  The library's lock must be held, as for those below
 * (value/labels_attr.c, value/axes.c). */
int hdf5_labels_attribute(hid_t object, const char *name, const char *called,
			  struct classes **out, struct error *err);
/* Return how many leading axes one sample fixes, if files of this kind say so, else 0. */
unsigned hdf5_axes_suggested(hid_t group, hid_t dset, unsigned rank);
/* Read a text attribute, cut to n bytes; return false if there is none. */
bool hdf5_axes_text(hid_t object, const char *name, char *buf, size_t n);

#endif
