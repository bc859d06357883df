/* SPDX-License-Identifier: BSD-2-Clause */
/* The metadata of a Zarr array: type, shape, chunks, codecs. */
#ifndef FORMATS_ZARR_META_H
#define FORMATS_ZARR_META_H

#include "base/intern.h"
#include "base/json.h"
#include "codec/codec.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

#define ZARR_STEPS_MAX 8
/* A codec that makes bytes of bytes. */
struct zarr_step {
	const struct codec *codec;
	struct codec_params params;
	/* n bytes become n / from * to + more bytes; from == 0: any number. */
	uint32_t from, to, more;
};
/* How a chunk is encoded: its axes are permuted, then each step is applied in turn. */
struct zarr_codecs {
	unsigned n;
	struct zarr_step step[ZARR_STEPS_MAX];
	bool turned;
	uint8_t order
		[RANK_MAX]; /* stored axis i is axis order[i] of the array */
};
/* A plain struct whose pointers lead to interned data.  The functions that read it clear
 * it first. */
struct zarr_array {
	struct dtype stored;
	const void *fill; /* one element as it is stored; NULL: zeros */
	bool no_fill;     /* the metadata have no fill value */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	/* Shape of what is decoded at once; each > 0. */
	uint64_t chunk[RANK_MAX];
	struct zarr_codecs codecs;
	/* The form of chunk keys: "1.2", "1/2", "c/1/2". */
	char separator; /* 0: the metadata do not say */
	bool prefixed;  /* keys begin with "c" */
	/* The value of a key is a shard: chunks, and an index. */
	bool sharded;
	/* Chunks of a shard along each axis. */
	uint64_t per_shard[RANK_MAX];
	/* Chunks of a shard in all. */
	uint64_t shard_chunks;
	/* The index is first, not last; big-endian; has a CRC-32C. */
	bool index_first, index_big, index_checked;
};
/* Most bytes of an element. */
#define ZARR_ELEMENT_MAX (UINT32_C(1) << 20)
/* Most bytes of a decoded chunk, and most chunks of a shard. */
#define ZARR_CHUNK_BYTES_MAX (UINT64_C(1) << 34)
#define ZARR_SHARD_CHUNKS_MAX (UINT64_C(1) << 22)

/*
 * Parse a JSON object as Python writes it: bare NaN, Infinity and -Infinity become
 * strings, and so do integers that no int64 holds.  Returns 0; -EBADMSG with a sentence
 * that says what is wrong where; or -ENOMEM.
 */
int zarr_json(const char *text, size_t n, json_t **out, struct error *err);
/* Set *out and return true if `v` is an integer and not negative. */
bool zarr_count(const json_t *v, uint64_t *out);
/*
 * Read .zarray (version 2) or the zarr.json of an array (version 3).  Returns 0;
 * -EBADMSG if it contradicts itself or the specification; -ENOTSUP if it needs something
 * that tensorfs does not know, which the sentence names; or -ENOMEM.
 */
int zarr_v2_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err);
int zarr_v3_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err);

/* ---- pieces of these ----------------------------------------------------- */

/* Read the list of integers `key` ("shape", "chunks", ...) into `out`; set *rank to
 * their number. */
int zarr_read_shape(const json_t *doc, const char *key, unsigned *rank,
		    uint64_t out[RANK_MAX], struct error *err);
/* Check that chunks have a size that can be handled, and elements: only an array without
 * elements may have chunks without elements. */
int zarr_check_chunk(struct zarr_array *z, struct error *err);
/* Read a type as .zarray spells it (text, or a list of fields), and as zarr.json
 * does. */
int zarr_v2_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err);
int zarr_v3_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err);
/* Set z->fill and z->no_fill from a fill value; z->stored must be set. */
int zarr_read_fill(const json_t *v, struct intern *in, struct zarr_array *z,
		   struct error *err);
/* Return true if tensorfs decodes this codec. */
bool zarr_has_numcodec(const char *name);
/* Append the codec `name` of numcodecs, with its configuration. */
int zarr_add_numcodec(struct zarr_codecs *c, const char *name,
		      const json_t *config, struct error *err);
/* Append a step.  Returns 0, or -ENOTSUP if there are too many. */
int zarr_add_step(struct zarr_codecs *c, const struct zarr_step *step,
		  struct error *err);
/* Append a permutation of axes to those that there are. */
void zarr_turn(struct zarr_codecs *c, unsigned rank, const uint8_t *order);

/*
 * Set *pos and *n to where chunk `i` is in a shard of `size` bytes, by the shard's index
 * of 16 bytes for each chunk.  Returns 0; 1 if the chunk was never written; -EBADMSG if
 * it is outside of the shard.
 */
int zarr_shard_find(const struct zarr_array *z, const void *index, uint64_t i,
		    uint64_t size, uint64_t *pos, uint64_t *n,
		    struct error *err);
/* Return the length of a shard's index in bytes.  Check the checksum of an index, if it
 * has one: returns 0 or -EBADMSG. */
uint64_t zarr_shard_index_bytes(const struct zarr_array *z);
int zarr_shard_check(const struct zarr_array *z, const void *index,
		     struct error *err);

#endif
