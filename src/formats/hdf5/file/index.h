/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks that an index has, from the nodes that libhdf5 reads to count them. */
#ifndef FORMATS_HDF5_FILE_INDEX_H
#define FORMATS_HDF5_FILE_INDEX_H

#include "base/vec.h"
#include "formats/hdf5/file/driver.h"
#include "tensor/grid.h"

enum hdf5_index_kind {
	HDF5_INDEX_NONE, /* no node was seen: 0 or 1 chunk, or all in a row */
	HDF5_INDEX_BTREE1,
	HDF5_INDEX_BTREE2,
	HDF5_INDEX_FIXED,
	HDF5_INDEX_EXTENSIBLE
};

/* A fixed or extensible array of addresses.  Its elements are in data blocks, or in
 * pages of these. */
struct hdf5_index_array {
	/* Bytes of an element; log2 of the elements of a page. */
	unsigned elem, page_bits;
	uint64_t count;        /* FIXED: number of elements */
	unsigned offset_bytes; /* EXTENSIBLE: bytes of an element's number */
	/* Elements of the index block; elements of the first data block. */
	unsigned lead, least;
	unsigned nears; /* data blocks whose addresses are in `near` */
	vec(uint64_t) near;
	/* Data blocks with pages, from the block or super block that was read last: */
	vec(uint64_t) pages; /* address of each block's first page */
	size_t at;           /* the block of the last page that was read */
	/* Number of the first element of the first one; elements of each. */
	uint64_t first, per_block;
};
struct hdf5_index {
	/* Set by the caller: */
	const struct grid *g;
	unsigned rank; /* axes of the dataset; the grid may have more */
	uint64_t max[RANK_MAX];       /* the dataset's maximum shape */
	unsigned addr_size, len_size; /* bytes of addresses and lengths */
	uint64_t base;                /* position of address 0, in bytes */
	uint64_t first;               /* list chunks from this number on */
	size_t room; /* list at most this many, the lowest ones */
	/* What was seen: */
	enum hdf5_index_kind kind;
	bool odd; /* a node that this code does not understand */
	bool no_memory;
	uint64_t entries;     /* number of chunks in all nodes */
	uint64_t outside;     /* those of them that are not in the grid */
	bool twice;           /* a chunk was seen more than once */
	bool more;            /* there are more than `room` chunks */
	vec(uint64_t) chunks; /* their numbers; hdf5_index_end sorts them */
	unsigned record;      /* BTREE2: bytes of a record */
	struct hdf5_index_array array;
};

/* Between these two calls the driver shows *x what libhdf5 reads in this thread.  The
 * library's lock must be held.  The caller frees x->chunks. */
void hdf5_index_begin(struct hdf5_index *x);
void hdf5_index_end(struct hdf5_index *x);
/* The driver calls this after each read: the `n` bytes at address `addr` are `data`.
 * Always returns 0. */
int hdf5_index_saw(uint64_t addr, const void *data, size_t n);

#endif
