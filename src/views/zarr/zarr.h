/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor as a Zarr array: its grid of chunks, and how these are served. */
#ifndef VIEWS_ZARR_ZARR_H
#define VIEWS_ZARR_ZARR_H

#include "views/view.h"

/*
 * How an array's chunks are served in Zarr v2: as they are stored, where Zarr has
 * codecs for that and all chunks were filtered alike, else decoded.  Chosen once.
 */
enum zarr_mode {
	ZARR_UNKNOWN, /* nobody asked yet */
	ZARR_STORED,
	ZARR_DECODED
};

/* The shape that Zarr is told: that of its dimensions. */
static inline const uint64_t *zarr_shape(const struct tensor *t)
{
	return t->full_shape ? t->full_shape : t->shape;
}
/* Are there Zarr data types for its elements? */
bool zarr_fits(const struct tensor *t);
/* The grid of chunks: that of the file, else one in `room` of chunks that are runs of
 * bytes.  NULL: too many for numbers. */
const struct grid *zarr_grid(const struct tensor *t, struct grid *room);
/* Chooses, if that was not done.  The first time may block on I/O: it looks
 * at where all chunks are.  -EIO, ... : it could not be found out. */
int zarr_mode(struct tensor *t, enum zarr_mode *out, struct error *err);
/* The same: are all chunks known to be there, so that a fill value stands for nothing? */
int zarr_is_whole(struct tensor *t, bool *out, struct error *err);

/* Where the chunks of a large and sparse grid are: numbers that `place_of` makes of them,
 * ascending. */
struct zarr_places {
	uint64_t n, at[];
};
/* NULL: the grid is not that, or its index does not say it.  Found out once; may block. */
const struct zarr_places *
zarr_places(struct tensor *t,
	    uint64_t (*place_of)(const struct tensor *t, uint64_t chunk));
/* It has been asked already, and did not say it. */
void zarr_places_unknown(struct tensor *t);
void zarr_places_free(struct tensor *t);

/* A file: chunk `k` as it is stored, or (`decoded`) as it is served elsewhere. */
struct zarr_chunk {
	struct tensor *t;
	uint64_t k;
	bool decoded;
};
/* Bytes of a chunk's file; -ENOENT: it was never written.  May block. */
int zarr_chunk_size(const struct zarr_chunk *c, struct pinner *p,
		    uint64_t *size, struct error *err);
int zarr_chunk_prepare(const struct zarr_chunk *c, uint64_t off, uint64_t len,
		       struct error *err);
/* As files.map, of a chunk that was prepared. */
int zarr_chunk_map(const struct zarr_chunk *c, uint64_t off, struct plan *plan,
		   struct error *err);

/* HDF5's filters that Zarr has, by their numbers. */
enum zarr_filter {
	ZARR_ZLIB = 1,
	ZARR_SHUFFLE = 2,
	ZARR_FLETCHER32 = 3, /* as the last one, left out */
	ZARR_BLOSC = 32001,
	ZARR_ZSTD = 32015
};
/* Compressors inside of blosc, as its filter numbers them; NULL: unknown. */
const char *zarr_blosc_name(uint32_t code);

/* The chunks of a tensor's own grid as they are stored. */
void zarr_stored_init(struct tensor *t);
/* Can Zarr v2 say how they are encoded?  (Those without a skip mask.) */
bool zarr_can_store(const struct tensor *t);
/* Can Zarr v3?  It has fewer codecs (and HDF5's deflate is no gzip).  If not, its chunks are
 * decoded. */
bool zarr3_can_store(const struct tensor *t);
/* Their elements' type, where that may be. */
const struct dtype *zarr_stored_dtype(const struct tensor *t);

/* Texts, malloc'ed; NULL and err.  They may block. */
char *zarr_array_text(struct tensor *t, struct error *err);      /* .zarray */
char *zarr_attributes_text(struct tensor *t, struct error *err); /* .zattrs */
char *zarr3_array_text(struct tensor *t, struct error *err);     /* zarr.json */
/* Zarr v3 has fewer types. */
bool zarr3_fits(const struct tensor *t);
/* The fill value as Zarr writes it: JSON. */
void zarr_put_fill(FILE *out, const struct tensor *t, bool v3);

#endif
