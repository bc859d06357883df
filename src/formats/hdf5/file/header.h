/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute messages of an object header, and hiding some of them from libhdf5. */
#ifndef FORMATS_HDF5_FILE_HEADER_H
#define FORMATS_HDF5_FILE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "extent/handles.h"

/* A block of the header, as it is in the file except for the types of hidden messages. */
struct hdf5_header_block {
	uint64_t pos; /* in the file, in bytes */
	uint32_t size;
	bool summed; /* the last 4 bytes are a checksum of the others */
	unsigned char *bytes;
};
struct hdf5_header_attribute {
	uint32_t block, at; /* its message: number of the block, byte in it */
	bool hidden;
	char *name; /* malloc'ed; NULL: it cannot be read */
};
struct hdf5_header {
	uint32_t file;      /* row of the table of files */
	unsigned version;   /* 1 or 2 */
	unsigned head;      /* bytes in front of each message's data */
	uint64_t base;      /* position of address 0, in bytes */
	unsigned addr, len; /* size in bytes of an address, of a length */
	vec(struct hdf5_header_block) blocks;
	vec(struct hdf5_header_attribute) attributes;
};

/*
 * Read the header of the object at address `at`.  `base` is the position of address 0 in
 * the file, `addr` and `len` are the sizes of its addresses and lengths, all in bytes.
 * -EBADMSG: the header is damaged; -ENOMEM; errors of handles_read.  The caller frees
 * *out by hdf5_header_free whatever is returned.
 */
int hdf5_header_read(struct handles *h, uint32_t file, uint64_t base,
		     unsigned addr, unsigned len, uint64_t at,
		     struct hdf5_header *out, struct error *err);
void hdf5_header_free(struct hdf5_header *x);
/* Give each attribute message that is `hidden` an unknown type, and all others their
 * own; then set the checksums. */
void hdf5_header_hide(struct hdf5_header *x);
/* Copy the part of the header that is in [pos, pos + n) of its file over `buf`, which
 * has these `n` bytes. */
void hdf5_header_overlay(const struct hdf5_header *x, uint64_t pos, void *buf,
			 size_t n);

#endif
