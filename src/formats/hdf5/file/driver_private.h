/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver and its self-test share. */
#ifndef FORMATS_HDF5_FILE_DRIVER_PRIVATE_H
#define FORMATS_HDF5_FILE_DRIVER_PRIVATE_H

#include "formats/hdf5/file/driver.h"

/* What the driver's property carries: a registered file, or (handles NULL, for
 * the self-test) a descriptor, which may be written too. */
struct hdf5_driver_info {
	struct handles *handles;
	uint32_t file;
	int fd;
};

/* One entry of the library's error stack, enough to know it again. */
#define HDF5_WHY 400
struct hdf5_complaint {
	unsigned seen; /* entries of the stack looked at */
	bool plugin;   /* it is the plugin loader's */
	hid_t minor;
	char where[48], text[HDF5_WHY];
};

/* Get what libhdf5 complained of in this thread's last call that failed.  In
 * formats/hdf5/file/complaint.c. */
void hdf5_complaint_get(struct hdf5_complaint *c);
bool hdf5_complaint_equal(const struct hdf5_complaint *a,
			  const struct hdf5_complaint *b);

/* Which file an object is in; NULL when it is none of ours.  The file's, as
 * long as it is open. */
const struct hdf5_driver_info *hdf5_driver_info(hid_t object);
/* Make a file access list lead to the driver. */
herr_t hdf5_driver_set(hid_t fapl, const struct hdf5_driver_info *info);
/* Open `name` with the driver; `why` (HDF5_WHY bytes) is set when the result is
 * negative.  Lock held, as for all below. */
hid_t hdf5_driver_fopen(const char *name, const struct hdf5_driver_info *info,
			unsigned flags, char *why);

/* Ask for a chunk and see what the library does: reads one (*out), complains
 * without reading (*why), or something that we do not understand. */
enum hdf5_found { HDF5_FOUND_CHUNK, HDF5_FOUND_COMPLAINT, HDF5_FOUND_ODD };
enum hdf5_found hdf5_spy(hid_t dset, const hsize_t *offset, void *dummy,
			 struct hdf5_location *out, struct hdf5_complaint *why);

/* NULL when locations are right, else the reason in words.  Learns what the
 * library complains of when a chunk was never written: because the dataset has
 * no chunk at all, because it has not this one. */
#define HDF5_ABSENT_KINDS 2
const char *hdf5_selftest(struct hdf5_complaint *absent);

#endif
