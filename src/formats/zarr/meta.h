/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metadata of a Zarr array says: type, shape, chunks, codecs. */
#ifndef FORMATS_ZARR_META_H
#define FORMATS_ZARR_META_H

#include "base/intern.h"
#include "base/json.h"
#include "codec/codec.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

#define ZARR_STEPS_MAX 8
/* A codec from bytes to bytes. */
struct zarr_step {
	const struct codec *codec;
	struct codec_params params;
	/* Bytes become bytes / from * to, and `more`; from == 0: any number. */
	uint32_t from, to, more;
};
/* How a chunk is encoded: turned, then one step after the other. */
struct zarr_codecs {
	unsigned n;
	struct zarr_step step[ZARR_STEPS_MAX];
	bool turned;
	uint8_t order
		[RANK_MAX]; /* stored axis i is axis order[i] of the array */
};
/* Plain data but for what the intern keeps: cleared before it is filled in. */
struct zarr_array {
	struct dtype stored;
	const void *fill; /* one element as stored; NULL: zeros */
	bool no_fill;     /* the file says that it has none */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t chunk[RANK_MAX]; /* of what is decoded at once: > 0 */
	struct zarr_codecs codecs;
	/* Keys of chunks: "1.2", "1/2", "c/1/2". */
	char separator; /* 0: the file does not say */
	bool prefixed;  /* by "c" */
	bool sharded;   /* a key has a shard: chunks, and an index */
	uint64_t per_shard[RANK_MAX];               /* chunks along each axis */
	uint64_t shard_chunks;                      /* in all */
	bool index_first, index_big, index_checked; /* by CRC-32C */
};
/* Bytes of an element at most. */
#define ZARR_ELEMENT_MAX (UINT32_C(1) << 20)
/* Bytes of a decoded chunk, chunks of a shard. */
#define ZARR_CHUNK_BYTES_MAX (UINT64_C(1) << 34)
#define ZARR_SHARD_CHUNKS_MAX (UINT64_C(1) << 22)

/*
 * JSON as Python writes it: bare NaN, Infinity, -Infinity become strings, and so do
 * integers that no int64 holds.  -EBADMSG with what is wrong where; -ENOMEM.
 */
int zarr_json(const char *text, size_t n, json_t **out, struct error *err);
/* A number that is a whole one and not negative. */
bool zarr_count(const json_t *v, uint64_t *out);
/*
 * .zarray, or zarr.json of an array.  -EBADMSG: it makes no sense; -ENOTSUP: it needs
 * what tensorfs does not know, which the sentence names; -ENOMEM.
 */
int zarr_v2_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err);
int zarr_v3_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err);

/* ---- pieces of these ----------------------------------------------------- */

/* "shape", "chunks", ...: so many whole numbers; rank is how many there are. */
int zarr_read_shape(const json_t *doc, const char *key, unsigned *rank,
		    uint64_t out[RANK_MAX], struct error *err);
/* The chunk is one that there is room for; 0 elements only where there are none. */
int zarr_check_chunk(struct zarr_array *z, struct error *err);
/* Type by its spelling in .zarray (text, or a list of fields), in zarr.json. */
int zarr_v2_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err);
int zarr_v3_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err);
/* z->fill, z->no_fill from a fill value; z->stored is there. */
int zarr_read_fill(const json_t *v, struct intern *in, struct zarr_array *z,
		   struct error *err);
/* Is it one that we decode? */
bool zarr_has_numcodec(const char *name);
/* Append the codec `name` of numcodecs. */
int zarr_add_numcodec(struct zarr_codecs *c, const char *name,
		      const json_t *config, struct error *err);
/* Append a step that any may have. */
int zarr_add_step(struct zarr_codecs *c, const struct zarr_step *step,
		  struct error *err);
/* Turned by this permutation of axes, behind those that there are. */
void zarr_turn(struct zarr_codecs *c, unsigned rank, const uint8_t *order);

/*
 * Where chunk `i` of a shard of `size` bytes is, by the index of it: 16 bytes for each
 * chunk.  1: it was never written; -EBADMSG: it lies outside.
 */
int zarr_shard_find(const struct zarr_array *z, const void *index, uint64_t i,
		    uint64_t size, uint64_t *pos, uint64_t *n,
		    struct error *err);
/* Bytes of the index; and is its checksum right? */
uint64_t zarr_shard_index_bytes(const struct zarr_array *z);
int zarr_shard_check(const struct zarr_array *z, const void *index,
		     struct error *err);

#endif
