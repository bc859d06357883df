/* SPDX-License-Identifier: BSD-2-Clause */
/* Global heaps of HDF5, in which text and sequences of variable length are stored. */
#ifndef FORMATS_HDF5_FILE_HEAP_H
#define FORMATS_HDF5_FILE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How to read a file, and what its superblock says of addresses. */
struct hdf5_heap_file {
	/* Read all of [pos, pos + n) into `buf`.  Return 0, or -errno with a sentence. */
	int (*read)(void *ctx, uint64_t pos, void *buf, size_t n,
		    struct error *err);
	void *ctx;
	uint64_t base;            /* position of address 0, in bytes */
	unsigned address, length; /* size in bytes of each */
};
/* Bytes of a reference, which is what the file stores for an element of variable
 * length: a count, an address and an index. */
#define HDF5_HEAP_ADDRESS_MAX 32
#define HDF5_HEAP_REFERENCE(address) (4 + (address) + 4)
#define HDF5_HEAP_REFERENCE_MAX HDF5_HEAP_REFERENCE(HDF5_HEAP_ADDRESS_MAX)

/* A reader of heaps, which caches those used last.  Only one thread may use it at a
 * time.  hdf5_heap_new returns NULL if out of memory, or if addresses or lengths have
 * more than 32 bytes.  The caller frees it by hdf5_heap_free. */
struct hdf5_heap;
struct hdf5_heap *hdf5_heap_new(const struct hdf5_heap_file *f);
void hdf5_heap_free(struct hdf5_heap *h);
/*
 * Find what `reference` (HDF5_HEAP_REFERENCE bytes) refers to: *count items of `each`
 * bytes at *data (NULL if there are none).  The heap owns *data, which is valid until the
 * next call.  -EBADMSG: the reference leads nowhere, or to an object whose size is not
 * that of *count items; -ENOTSUP: a heap of more than 1 GiB; -ENOMEM; errors of `read`.
 */
int hdf5_heap_get(struct hdf5_heap *h, const unsigned char *reference,
		  uint64_t each, const unsigned char **data, uint64_t *count,
		  struct error *err);

#endif
