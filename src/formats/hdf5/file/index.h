/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chunks an index has: what the driver sees while libhdf5 counts them. */
#ifndef FORMATS_HDF5_FILE_INDEX_H
#define FORMATS_HDF5_FILE_INDEX_H

#include "base/vec.h"
#include "formats/hdf5/file/driver.h"
#include "tensor/grid.h"

enum hdf5_index_kind {
	HDF5_INDEX_NONE, /* no node was seen: one chunk, none, or all in a row */
	HDF5_INDEX_BTREE1,
	HDF5_INDEX_BTREE2,
	HDF5_INDEX_FIXED,
	HDF5_INDEX_EXTENSIBLE
};

/* An array of addresses, whose elements come in data blocks or their pages. */
struct hdf5_index_array {
	unsigned elem, page_bits;
	uint64_t count;        /* FIXED: elements */
	unsigned offset_bytes; /* EXTENSIBLE: of the number of an element, */
	unsigned lead,
		least;  /* elements before the blocks, of the first block */
	unsigned nears; /* the first blocks, known by their addresses */
	vec(uint64_t) near;
	/* Blocks with pages that were announced last: */
	vec(uint64_t) pages;       /* where each one's first page is */
	size_t at;                 /* the one a page was seen of */
	uint64_t first, per_block; /* number of the first element, elements */
};
struct hdf5_index {
	/* Set by the caller: */
	const struct grid *g;
	unsigned rank;          /* of the dataset; the grid's may be more */
	uint64_t max[RANK_MAX]; /* its largest shape */
	unsigned addr_size, len_size; /* bytes of addresses and lengths */
	uint64_t base;  /* what addresses in the file are relative to */
	uint64_t first; /* chunks from here on */
	size_t room;    /* that many, the first ones */
	/* What was seen: */
	enum hdf5_index_kind kind;
	bool odd; /* something that we do not understand */
	bool no_memory;
	uint64_t entries;     /* chunks */
	uint64_t outside;     /* of these, not in the grid */
	bool twice;           /* one was there more than once */
	bool more;            /* than `room` */
	vec(uint64_t) chunks; /* sorted by hdf5_index_end */
	unsigned record;      /* BTREE2: bytes of a record */
	struct hdf5_index_array array;
};

/* Between the two, this thread's driver looks at what libhdf5 reads.  Lock held. */
void hdf5_index_begin(struct hdf5_index *x);
void hdf5_index_end(struct hdf5_index *x);
/* The driver: these metadata were read; 0. */
int hdf5_index_saw(uint64_t addr, const void *data, size_t n);

#endif
