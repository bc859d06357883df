/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the making of array.h5 and merged.h5: an HDF5 file without its data. */
#ifndef FORMATS_HDF5_EXPORT_MONOLITH_H
#define FORMATS_HDF5_EXPORT_MONOLITH_H

#include <stdio.h>

#include "formats/hdf5/export/export.h"
#include "formats/hdf5/file/driver.h"
#include "views/monolith.h"

/* Bytes of an attribute; of one dataset's text; of the file but for data. */
#define MONOLITH_ATTRIBUTE_MAX (UINT64_C(64) << 20)
#define MONOLITH_TEXT_MAX (UINT64_C(16) << 20)
#define MONOLITH_MAX (UINT64_C(256) << 20)

/* A file in memory: all of it, or (once `placing`) all but raw data behind `front`. */
struct monolith_image {
	char *data; /* malloc'ed */
	size_t size, room;
	uint64_t eoa; /* of the file */
	bool placing;
	uint64_t front;
};
/* A new file of the format of HDF5 1.8; negative: hdf5_why says. */
hid_t monolith_create(struct monolith_image *image, hid_t fcpl);

/* The file in the making; lock held. */
struct making {
	struct hdf5_source *s;
	const struct hdf5_tensor *of; /* NULL: everything */
	struct tensor
		*array;   /* instead of `s` and `of`: it is in no HDF5 file */
	const char *text; /* what hdf5_texts_read has read */
	size_t text_len;
	hid_t out; /* the file */
	struct monolith_image image;
	hid_t from; /* a source file that is open; negative: none is */
	uint32_t file;
	hid_t gcpl, dcpl, tcpl, lcpl;    /* tcpl: of datasets of text */
	FILE *notes;                     /* lines: what was left out */
	vec(struct monolith_part) parts; /* `at` is set at the end */
	vec(char *) paths;               /* of the datasets with parts */
	struct error *err;
};
/* Is a dataset of the items (its tensor) in the file? */
bool monolith_has(const struct making *m, const struct hdf5_tensor *h);
/* -EIO with the library's words. */
int monolith_failed(struct making *m, const char *path, const char *what);
/* A line for the notes. */
void monolith_note(struct making *m, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The groups that a path leads through; a dataset's data have to get a place. */
int monolith_parents(struct making *m, const char *path);
int monolith_part_add(struct making *m, uint64_t bytes, const char *path);

/* Everything but data, in a new file that is open as m->out; of m->array. */
int monolith_make(struct making *m);
int monolith_make_array(struct making *m);
/* Give each part its place behind that. */
int monolith_place(struct making *m);

/* The type of a dataset there: what h5py reads of served elements is what it reads in
 * the source.  `type` is that of the dataset in its file.  Negative: it cannot be. */
hid_t monolith_type(hid_t type, const struct hdf5_tensor *h);
/* All attributes but references; what cannot be read is noted. */
int monolith_attributes(struct making *m, const char *path, hid_t from,
			hid_t to);

/* Values of the text datasets that belong into the file, for the worker that makes it:
 * for each a header and `bytes` of values (a uint64_t and so many bytes each), or why it
 * is left out. */
struct monolith_text {
	uint64_t item;
	uint64_t lost; /* it is left out */
	uint64_t bytes;
};
/* Write those of item `i` into its dataset, made with `type`; or the reason. */
int monolith_text_write(struct making *m, size_t i, const char *path,
			hid_t type, hid_t dset);
/* Is there text for it?  *why (not terminated, *len bytes) when it is left out. */
bool monolith_text_find(const struct making *m, size_t i, const char **why,
			size_t *len);

#endif
