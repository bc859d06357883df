/* SPDX-License-Identifier: BSD-2-Clause */
/* What an HDF5 file says about one of its datasets. */
#ifndef FORMATS_HDF5_DATASET_DESCRIPTION_H
#define FORMATS_HDF5_DATASET_DESCRIPTION_H

#include "codec/pipeline.h"
#include "formats/hdf5/file/place.h"
#include "formats/hdf5/type/type.h"

/* A piece of raw data in another file (external storage). */
struct hdf5_raw {
	char *name;        /* as stored in the file */
	uint64_t pos, len; /* in bytes */
};
/*
 * One mapping of a virtual dataset, with names as stored ("%b" not yet replaced).  A slab
 * is four rows of `rank` (`from`: `from_rank`) numbers: start, stride, count, block.  An
 * unlimited axis has count UINT64_MAX, or block UINT64_MAX if it is one endless block.
 */
struct hdf5_mapping {
	char *file, *dataset;
	bool all;           /* the whole source is mapped; `from` is NULL */
	unsigned from_rank; /* axes of the source */
	uint64_t *to, *from;
};
enum hdf5_storage {
	HDF5_CHUNKED,
	HDF5_CONTIGUOUS,
	HDF5_COMPACT,
	HDF5_VIRTUAL,
	HDF5_UNALLOCATED /* contiguous, never written */
};
struct hdf5_description {
	unsigned null; /* a null dataspace: it has no shape at all */
	unsigned rank, own_rank;
	/* In served elements: array types add axes behind the dataset's own. */
	uint64_t shape[RANK_MAX];
	struct hdf5_type type; /* if no type was asked for */
	enum hdf5_match
		match; /* how the type relates to the one that was asked for */
	struct dtype stored; /* CONVERTIBLE: the stored number's type */
	char said[128];      /* DIFFERENT: the type that was found, in words */
	enum hdf5_storage storage;
	uint64_t pos, stored_bytes; /* CONTIGUOUS: address, bytes allocated */
	uint64_t chunk[RANK_MAX];
	unsigned raw_edges;  /* chunks at the edge are stored without filters */
	unsigned by_library; /* a filter that only libhdf5 can undo */
	struct pipeline pipeline;
	/* Bytes of one fill value with its array axes, as stored (if stored.kind is OTHER:
	 * as served); 0: the fill value is zero. */
	size_t fill_size;
	unsigned char *fill;
	size_t nraw;
	struct hdf5_raw *raw;
	size_t nmappings;
	struct hdf5_mapping *mapping;
};
void hdf5_description_free(struct hdf5_description *d);

/*
 * Describe a dataset, in this process.  `wanted` (may be NULL) is the type that it should
 * have.  A dataset behind a link into another file is described as a virtual dataset
 * that maps all of it.  Takes the library's lock; blocks.  -ENODATA: the file or the
 * dataset is missing; else errors of hdf5_open.  The caller frees *out after success.
 */
int hdf5_describe_here(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err);
/* The case of hdf5_describe_here in which the path leads through external links, which
 * the library must not follow (dataset/linked.c). */
int hdf5_describe_linked(const struct hdf5_place *at,
			 const struct hdf5_type *wanted,
			 struct hdf5_description *out, struct error *err);
/* Describe the open dataset `dset`; the library's lock must be held. */
int hdf5_describe(struct hdf5_source *s, hid_t dset,
		  const struct hdf5_type *wanted, struct hdf5_description *out,
		  struct error *err);

#endif
