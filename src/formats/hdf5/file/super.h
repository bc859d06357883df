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
	char driver[9]; /* "NCSAfami"; "": the file is one */
	size_t data_size;
	unsigned char data[HDF5_SUPER_DATA]; /* the driver's */
};

/* Bytes of a file's beginning that are looked at. */
#define HDF5_SUPER_HEAD 16384
/* The same of bytes; false: there is no superblock among them, or it is damaged. */
bool hdf5_super_parse(const unsigned char *head, size_t n,
		      struct hdf5_super *out);
/* Of a file, which may be anything; out->driver is "" where this is false. */
bool hdf5_super_read(const char *path, struct hdf5_super *out);

#endif
