/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor as a Zarr array: its grid of chunks, and how they are served. */
#ifndef VIEWS_ZARR_ZARR_H
#define VIEWS_ZARR_ZARR_H

#include "views/view.h"

/*
 * How an array's chunks are served in Zarr v2: as stored, if Zarr has codecs for that
 * and all chunks were filtered alike, else decoded.  Chosen once.
 */
enum zarr_mode {
	ZARR_UNKNOWN, /* not chosen yet */
	ZARR_STORED,
	ZARR_DECODED
};

/* Return the shape that Zarr shows: that of the array's dimensions. */
static inline const uint64_t *zarr_shape(const struct tensor *t)
{
	return t->full_shape ? t->full_shape : t->shape;
}
/* Return true if Zarr v2 has a data type for the tensor's elements. */
bool zarr_fits(const struct tensor *t);
/* Return the grid of chunks: that of the file, else one made in `room` whose chunks are
 * runs of bytes.  NULL if it has too many chunks to be numbered. */
const struct grid *zarr_grid(const struct tensor *t, struct grid *room);
/* Set *out to the mode, which the first call chooses.  The first call may block on I/O,
 * because it examines where all chunks are.  Returns 0, or -errno if that could not be
 * found out. */
int zarr_mode(struct tensor *t, enum zarr_mode *out, struct error *err);
/* As zarr_mode; *out is true if all chunks are known to be present, so that no reader
 * uses the fill value. */
int zarr_is_whole(struct tensor *t, bool *out, struct error *err);

/* The chunks of a large and sparse grid: numbers that `place_of` makes of them,
 * ascending. */
struct zarr_places {
	uint64_t n, at[];
};
/* Return the places, which the first call finds; NULL if the grid is not large and
 * sparse, or its index does not list its chunks.  Owned by the tensor.  May block. */
const struct zarr_places *
zarr_places(struct tensor *t,
	    uint64_t (*place_of)(const struct tensor *t, uint64_t chunk));
/* Record that the index does not list the chunks. */
void zarr_places_unknown(struct tensor *t);
void zarr_places_free(struct tensor *t);

/* A file of a Zarr array: chunk `k` in the mode of the array, or always decoded. */
struct zarr_chunk {
	struct tensor *t;
	uint64_t k;
	bool decoded;
};
/* Set *size to the bytes of a chunk's file.  Returns 0, -ENOENT if the chunk was never
 * written, or another -errno.  May block. */
int zarr_chunk_size(const struct zarr_chunk *c, struct pinner *p,
		    uint64_t *size, struct error *err);
int zarr_chunk_prepare(const struct zarr_chunk *c, uint64_t off, uint64_t len,
		       struct error *err);
/* As files_ops.map, for a chunk that was prepared. */
int zarr_chunk_map(const struct zarr_chunk *c, uint64_t off, struct plan *plan,
		   struct error *err);

/* The HDF5 filters that Zarr has, by their registered numbers. */
enum zarr_filter {
	ZARR_ZLIB = 1,
	ZARR_SHUFFLE = 2,
	ZARR_FLETCHER32 = 3, /* left out; must be the last filter */
	ZARR_BLOSC = 32001,
	ZARR_ZSTD = 32015
};
/* Return the name of a compressor inside blosc, by the number of the HDF5 filter; NULL
 * if it is unknown. */
const char *zarr_blosc_name(uint32_t code);

/* Make the set of a tensor's chunks as they are stored. */
void zarr_stored_init(struct tensor *t);
/* Return true if Zarr v2 can declare how the stored chunks (without a skip mask) are
 * encoded. */
bool zarr_can_store(const struct tensor *t);
/* Return true if Zarr v3 can declare it, which has fewer codecs (HDF5's deflate is not
 * gzip); if not, zarr3/ serves decoded chunks. */
bool zarr3_can_store(const struct tensor *t);
/* Return the type of elements in stored chunks; NULL if it is not one of Zarr. */
const struct dtype *zarr_stored_dtype(const struct tensor *t);

/* Return metadata that the caller frees; NULL with a sentence if that failed.  They may
 * block. */
char *zarr_array_text(struct tensor *t, struct error *err);      /* .zarray */
char *zarr_attributes_text(struct tensor *t, struct error *err); /* .zattrs */
char *zarr3_array_text(struct tensor *t, struct error *err);     /* zarr.json */
/* Return true if Zarr v3 has a data type for the elements; it has fewer than v2. */
bool zarr3_fits(const struct tensor *t);
/* Write the fill value as JSON. */
void zarr_put_fill(FILE *out, const struct tensor *t, bool v3);

#endif
