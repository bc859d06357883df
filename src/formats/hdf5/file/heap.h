/* SPDX-License-Identifier: BSD-2-Clause */
/* Global heaps of HDF5: where text and sequences of variable length are. */
#ifndef FORMATS_HDF5_FILE_HEAP_H
#define FORMATS_HDF5_FILE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How a file is read, and what its superblock says. */
struct hdf5_heap_file {
	/* All of [pos, pos + n), or an error with a sentence. */
	int (*read)(void *ctx, uint64_t pos, void *buf, size_t n,
		    struct error *err);
	void *ctx;
	uint64_t base;            /* where addresses count from */
	unsigned address, length; /* bytes of an address, of a length */
};
/* Of an element of variable length: a count, an address and an index. */
#define HDF5_HEAP_ADDRESS_MAX 32
#define HDF5_HEAP_REFERENCE(address) (4 + (address) + 4)
#define HDF5_HEAP_REFERENCE_MAX HDF5_HEAP_REFERENCE(HDF5_HEAP_ADDRESS_MAX)

/* Remembers the heaps that were used last.  One thread at a time; NULL: out of
 * memory. */
struct hdf5_heap;
struct hdf5_heap *hdf5_heap_new(const struct hdf5_heap_file *f);
void hdf5_heap_free(struct hdf5_heap *h);
/*
 * What an element (HDF5_HEAP_REFERENCE bytes) refers to: *count items of `each`
 * bytes at *data, which is the heap's until it is asked again (NULL for none).
 * -EBADMSG: what it refers to is not there, or has another size than its count
 * says; -ENOTSUP: a heap of more than 1 GiB; -ENOMEM; errors of `read`.
 */
int hdf5_heap_get(struct hdf5_heap *h, const unsigned char *reference,
		  uint64_t each, const unsigned char **data, uint64_t *count,
		  struct error *err);

#endif
