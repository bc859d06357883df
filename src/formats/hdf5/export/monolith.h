/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the making of array.h5 and merged.h5: an HDF5 file without its data. */
#ifndef FORMATS_HDF5_EXPORT_MONOLITH_H
#define FORMATS_HDF5_EXPORT_MONOLITH_H

#include <stdio.h>

#include "formats/hdf5/export/export.h"
#include "formats/hdf5/file/driver.h"
#include "views/monolith.h"

/* Limits in bytes: of an attribute, of one dataset's text, of the file without data. */
#define MONOLITH_ATTRIBUTE_MAX (UINT64_C(64) << 20)
#define MONOLITH_TEXT_MAX (UINT64_C(16) << 20)
#define MONOLITH_MAX (UINT64_C(256) << 20)

/* A file in memory. Once `placing` is set, raw data at or behind `front` are
 * dropped. */
struct monolith_image {
	char *data; /* malloc'ed */
	size_t size, room;
	uint64_t eoa; /* end of allocated addresses, in bytes */
	bool placing;
	uint64_t front;
};
/* Create a file in the format of HDF5 1.8. Negative on errors; hdf5_why tells the
 * reason. */
hid_t monolith_create(struct monolith_image *image, hid_t fcpl);

/* The file that is being made. The library's lock must be held. */
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
	hid_t gcpl, dcpl, tcpl, lcpl; /* tcpl: of datasets of text */
	FILE *notes; /* a line for each object that is left out */
	vec(struct monolith_part) parts; /* `at` is set at the end */
	vec(char *) paths;               /* of the datasets with parts */
	struct error *err;
};
/* Return true if the dataset of an item belongs into the file. */
bool monolith_has(const struct making *m, const struct hdf5_tensor *h);
/* Set an error with the reason that the library gives; return -EIO. */
int monolith_failed(struct making *m, const char *path, const char *what);
/* Append a line to the notes. */
void monolith_note(struct making *m, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* monolith_parents makes the groups that a path leads through. monolith_part_add
 * notes that the dataset `path` needs room for `bytes` of data. */
int monolith_parents(struct making *m, const char *path);
int monolith_part_add(struct making *m, uint64_t bytes, const char *path);

/* Write everything but data into the new file m->out: of the source, or of m->array. */
int monolith_make(struct making *m);
int monolith_make_array(struct making *m);
/* Give each part its place behind everything else. */
int monolith_place(struct making *m);

/* Return the type of a dataset in the new file: h5py reads served elements with it
 * as it reads those of the source. `type` is the type in the source. Negative if
 * there is none. */
hid_t monolith_type(hid_t type, const struct hdf5_tensor *h);
/* Copy all attributes but references; note those that cannot be read. */
int monolith_attributes(struct making *m, const char *path, hid_t from,
			hid_t to);

/* Values of the text datasets that belong into the file, for the worker that makes it:
 * for each a header and `bytes` of values (a uint64_t and so many bytes each), or why it
 * is left out. */
struct monolith_text {
	uint64_t item;
	uint64_t lost; /* 1 if it is left out */
	uint64_t bytes;
};
/* Write the values of item `i` into its dataset, made with `type`. */
int monolith_text_write(struct making *m, size_t i, const char *path,
			hid_t type, hid_t dset);
/* Return true if there is text for item `i`; else set *why (not terminated, *len
 * bytes). */
bool monolith_text_find(const struct making *m, size_t i, const char **why,
			size_t *len);

#endif
