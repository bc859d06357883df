/* SPDX-License-Identifier: BSD-2-Clause */
/* The superblock of an HDF5 file: how long it is, and which driver wrote it. */
#ifndef FORMATS_HDF5_FILE_SUPER_H
#define FORMATS_HDF5_FILE_SUPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HDF5_SUPER_DATA 2048
struct hdf5_super {
	uint64_t eof;   /* address of the end of the file */
	char driver[9]; /* "NCSAfami", ...; "": none, the file is whole */
	size_t data_size;
	/* The driver's data; what does not fit is cut off. */
	unsigned char data[HDF5_SUPER_DATA];
};

/* Bytes of a file's beginning that are read. */
#define HDF5_SUPER_HEAD 16384
/* Parse the superblock in the first `n` bytes of a file.  Return false if there is
 * none, or if it is damaged. */
bool hdf5_super_parse(const unsigned char *head, size_t n,
		      struct hdf5_super *out);
/* Read the superblock of a file, which may be of any format.  Return false if there is
 * none, or if it is damaged or cannot be read; out->driver is "" if there is none. */
bool hdf5_super_read(const char *path, struct hdf5_super *out);

#endif
