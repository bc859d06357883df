/* SPDX-License-Identifier: BSD-2-Clause */
/* A chunk is one stored, perhaps compressed, block; a set numbers the chunks of one
 * tensor. */
#ifndef EXTENT_CHUNK_H
#define EXTENT_CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "codec/pipeline.h"
#include "codec/recode.h"
#include "extent/handles.h"

/* A fill value: one element, repeated.  An absent chunk reads as this. */
struct fill {
	/* Borrowed from the set; in the byte order that is served. */
	const void *pattern;
	uint32_t width; /* in bytes; 1 and a pattern of NULL for zeros */
};

enum chunk_state {
	CHUNK_STORED, /* its bytes are in a file, at pos */
	CHUNK_ABSENT, /* never written: reads as its fill value */
	CHUNK_FETCH   /* set->ops->fetch makes the bytes */
};
struct chunk {
	enum chunk_state state;
	/* Number of the backing file in the table of handles. */
	uint32_t file;
	uint32_t skip_mask; /* bit i: this chunk was stored without filter i */
	uint64_t pos;       /* offset of its stored bytes in the file */
	uint64_t stored;    /* number of stored bytes */
	uint64_t size;      /* number of bytes as served, decoded and recoded */
	/* Number of those of `size` that lie within the array; 0: all. */
	uint64_t useful;
	/* NULL if the bytes are stored verbatim. */
	const struct pipeline *pipeline;
	/* NULL if the decoded bytes are served. */
	const struct recode *recode;
	struct fill fill;
};

/*
 * A set is a numbered family of chunks: those of one tensor, or those of generated
 * texts.  Chunks are found through *segments*, small tables of locations that the store
 * loads with `load_index_page` and keeps in its cache like data.  So an index of a million
 * chunks costs only what is used of it.
 */
struct chunk_set;
struct chunk_set_ops {
	/* Optional.  Learn what the calls below need for `index`, for example by
	 * opening the part that has the chunk.  Returns 0 or -errno.  Blocks on I/O;
	 * idempotent. */
	int (*prepare)(struct chunk_set *s, uint64_t index, struct error *err);
	/* Return the number of the segment that locates `index`, or UINT64_MAX if no
	 * segment is needed; `locate` is then given NULL.  Pure. */
	uint64_t (*index_page_of)(const struct chunk_set *s, uint64_t index);
	/* Build a segment.  *out gets a new buffer, whose reference the caller owns and
	 * whose bytes are counted in `gauge`.  Returns 0 or -errno.  Blocks on I/O; the
	 * caller holds no lock. */
	int (*load_index_page)(struct chunk_set *s, uint64_t segment,
			       _Atomic uint64_t *gauge, struct buf **out,
			       struct error *err);
	/* Describe in *out where chunk `index` is.  Returns 0 or -errno.  Pure, given
	 * its segment. */
	int (*locate)(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err);
	/* Make the decoded bytes of a CHUNK_FETCH chunk; *out and `gauge` are as in
	 * load_index_page.  Their number may differ from chunk.size for generated texts.
	 * NULL if the set has no such chunks.  Blocks. */
	int (*fetch)(struct chunk_set *s, uint64_t index,
		     _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err);
	/* Find slice `n`, a string, inside a fetched chunk.  Returns 0, or -errno if
	 * the string could not be read; *off and *len are then the place of the error's
	 * sentence.  Pure; NULL for sets without slices. */
	int (*slice)(const struct chunk_set *s, const struct buf *b, uint32_t n,
		     size_t *off, size_t *len);
	/* Set *out to the chunk that sequential reading wants after `index`.  Returns
	 * false at the end, or when that chunk is not known yet.  *carry is the number
	 * of axes of the grid that end between the two: 0 within a line of chunks, 1
	 * from line to line, and so on; between two parts it is larger than any such
	 * number.  Pure; NULL if the set is not prefetched. */
	bool (*next)(const struct chunk_set *s, uint64_t index, uint64_t *out,
		     unsigned *carry);
	/*
	 * Optional.  Write into `text` everything, apart from the present content of
	 * file c->file, that decides the bytes of a CHUNK_FETCH chunk.  Chunks with
	 * equal texts have equal bytes, in any process at any time.  Returns false if
	 * that does not fit into `n` bytes, or if the chunk is not worth sharing.
	 * Pure.
	 */
	bool (*origin)(const struct chunk_set *s, uint64_t index,
		       const struct chunk *c, char *text, size_t n);
	/* Name a chunk for messages: "run_0200-0300.h5: /data chunk 17". */
	void (*describe)(const struct chunk_set *s, uint64_t index, char *buf,
			 size_t n);
};
struct chunk_set {
	const struct chunk_set_ops *ops;
	uint64_t id;           /* never used again; the cache's key */
	_Atomic uint64_t unit; /* typical size of a decoded chunk, in bytes */
	/* The warning "chunk exceeds the cache" was logged. */
	_Atomic bool warned;
};
/* index_page_of and locate for sets of generated texts.  Each text is a CHUNK_FETCH chunk
 * whose size is not known before it is made. */
uint64_t chunk_text_index_page_of(const struct chunk_set *s, uint64_t index);
int chunk_text_locate(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err);
/* Return a set id that this process has not used yet.  Thread-safe. */
uint64_t chunk_set_new_id(void);

/* Return true if the stored bytes of a chunk are the bytes that are served. */
bool chunk_is_verbatim(const struct chunk *c);
/* Print a few lines that decide the bytes of a CHUNK_STORED chunk, as
 * chunk_set_ops.origin does for a CHUNK_FETCH chunk. */
void chunk_origin(const struct chunk *c, FILE *out);
/* Return the number of bytes needed while a chunk is decoded, beside the result: for
 * its stored bytes and for scratch.  SIZE_MAX if that does not fit. */
size_t chunk_scratch(const struct chunk *c);
/* Read, decode and recode a CHUNK_STORED chunk into c->size bytes at `out`.  Returns 0,
 * -EBADMSG, -ENOTSUP, -EIO, -ENOMEM, -ESTALE or -ENODATA, each with a sentence.  Blocks
 * on I/O. */
int chunk_load(struct handles *h, const struct chunk *c, void *out,
	       struct error *err);

#endif
