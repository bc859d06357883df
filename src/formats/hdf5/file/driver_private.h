/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions and types that the driver shares with its self-test. */
#ifndef FORMATS_HDF5_FILE_DRIVER_PRIVATE_H
#define FORMATS_HDF5_FILE_DRIVER_PRIVATE_H

#include "formats/hdf5/file/driver.h"

/* The driver's property of a file access list: a registered file or, if `handles` is
 * NULL, the descriptor of the self-test's file, which may also be written. */
struct hdf5_driver_info {
	struct handles *handles;
	uint32_t file;
	int fd;
};

/* One entry of the library's error stack, with all that is needed to recognise it. */
#define HDF5_WHY 400
struct hdf5_complaint {
	unsigned seen; /* entries of the stack looked at */
	bool plugin;   /* the plugin loader made this entry */
	hid_t minor;
	char where[48], text[HDF5_WHY];
};

/* Get the innermost entry of libhdf5's error stack after the last failed call of this
 * thread (file/complaint.c). */
void hdf5_complaint_get(struct hdf5_complaint *c);
bool hdf5_complaint_equal(const struct hdf5_complaint *a,
			  const struct hdf5_complaint *b);

/* Return the driver's property of the file that `object` is in, or NULL if our driver
 * did not open that file.  It is owned by the open file. */
const struct hdf5_driver_info *hdf5_driver_info(hid_t object);
/* Make a file access list use the driver.  Negative on failure. */
herr_t hdf5_driver_set(hid_t fapl, const struct hdf5_driver_info *info);
/* Open `name` with the driver.  If the result is negative, `why` (HDF5_WHY bytes) is
 * set to the reason.  The lock must be held, as for all functions below. */
hid_t hdf5_driver_fopen(const char *name, const struct hdf5_driver_info *info,
			unsigned flags, char *why);

/* Ask the library for a chunk and watch what it does.  It reads one: *out is set.  It
 * fails without a read: *why is set.  It does something that this code does not
 * understand: HDF5_FOUND_ODD. */
enum hdf5_found { HDF5_FOUND_CHUNK, HDF5_FOUND_COMPLAINT, HDF5_FOUND_ODD };
enum hdf5_found hdf5_spy(hid_t dset, const hsize_t *offset, void *dummy,
			 struct hdf5_location *out, struct hdf5_complaint *why);

/* Test whether hdf5_spy finds the right locations.  Return NULL if it does, else the
 * reason in words.  Sets absent[0] to what the library complains of if a dataset has
 * no chunk at all, and absent[1] if it lacks the chunk that was asked for. */
#define HDF5_ABSENT_KINDS 2
const char *hdf5_selftest(struct hdf5_complaint *absent);

#endif
