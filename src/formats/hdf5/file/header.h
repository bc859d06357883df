/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute messages of an object header, and reading past some of them. */
#ifndef FORMATS_HDF5_FILE_HEADER_H
#define FORMATS_HDF5_FILE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "extent/handles.h"

/* A piece of the header, as it is in the file but for messages that are hidden. */
struct hdf5_header_block {
	uint64_t pos; /* in the file */
	uint32_t size;
	bool summed; /* its last 4 bytes are a checksum of the others */
	unsigned char *bytes;
};
struct hdf5_header_attribute {
	uint32_t block, at; /* where its message begins */
	bool hidden;
	char *name; /* NULL: it has none that can be read */
};
struct hdf5_header {
	uint32_t file;      /* in handles */
	unsigned version;   /* 1 or 2 */
	unsigned head;      /* bytes in front of each message */
	uint64_t base;      /* of addresses in the file */
	unsigned addr, len; /* bytes of an address, of a length */
	vec(struct hdf5_header_block) blocks;
	vec(struct hdf5_header_attribute) attributes;
};

/*
 * Read the header of the object at address `at`.  `base`, `addr` and `len` are the
 * file's: position of address 0, bytes of addresses and of lengths.  -ENOMEM;
 * -EIO, -EBADMSG with a sentence; *out is to be freed whatever is returned.
 */
int hdf5_header_read(struct handles *h, uint32_t file, uint64_t base,
		     unsigned addr, unsigned len, uint64_t at,
		     struct hdf5_header *out, struct error *err);
void hdf5_header_free(struct hdf5_header *x);
/* Set the messages' types by `hidden` (that of a hidden one is unknown), and the
 * checksums. */
void hdf5_header_hide(struct hdf5_header *x);
/* Put what of the header lies in [pos, pos + n) of its file into `buf`. */
void hdf5_header_overlay(const struct hdf5_header *x, uint64_t pos, void *buf,
			 size_t n);

#endif
