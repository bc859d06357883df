/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for what the library takes from heaps. */
#ifndef SOURCE_HDF5_ARENA_H
#define SOURCE_HDF5_ARENA_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Lengths of strings and sequences come from the file, so there is a limit; and
 * when the library fails halfway it does not say what it has allocated, so all
 * is given back together.  One that is all zeros is empty.
 */
struct hdf5_arena_block;
struct hdf5_arena {
	struct hdf5_arena_block *first;
	unsigned char *at;
	size_t left;
	uint64_t used, limit;
	bool full; /* the limit was hit */
};

/* Reads with this transfer list allocate here, `limit` bytes at most. */
herr_t hdf5_arena_use(struct hdf5_arena *a, uint64_t limit, hid_t dxpl);
void hdf5_arena_empty(struct hdf5_arena *a);

#endif
