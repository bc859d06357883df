/* SPDX-License-Identifier: BSD-2-Clause */
/* One stored, perhaps compressed, block; and the sets they come in. */
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

/* What an absent chunk reads as: one element, repeated. */
struct fill {
	const void *pattern; /* borrowed from the set; served byte order */
	uint32_t width;      /* bytes; 1 with pattern 0 for zeros */
};

enum chunk_state {
	CHUNK_STORED, /* in a file, at pos */
	CHUNK_ABSENT, /* never written: reads as fill, as the format says */
	CHUNK_FETCH   /* bytes come from set->ops->fetch, not from a pread */
};
struct chunk {
	enum chunk_state state;
	uint32_t file;      /* which backing file (number in handles) */
	uint32_t skip_mask; /* filters this chunk was stored without */
	uint64_t pos;       /* where its stored bytes begin in the file */
	uint64_t stored;    /* stored bytes */
	uint64_t size;      /* bytes as served, decoded and recoded */
	uint64_t useful;    /* of `size`, the bytes within the array; 0: all */
	const struct pipeline *pipeline; /* NULL: stored verbatim */
	const struct recode *recode;     /* NULL: served as decoded */
	struct fill fill;
};

/*
 * A set is a numbered family of chunks: those of one tensor, or one generated
 * text.  Finding chunks goes by *segments*, small tables of locations that the
 * store loads through `load_segment` and keeps in its cache like data, so an
 * index of a million chunks is paid for by the part that is used.
 */
struct chunk_set;
struct chunk_set_ops {
	/* Optional: learn what the calls below need for `index` (open the part
	 * it is in).  Blocks on I/O; idempotent. */
	int (*prepare)(struct chunk_set *s, uint64_t index, struct error *err);
	/* Number of the segment that locates `index`; pure.  UINT64_MAX: none
	 * is needed, `locate` gets NULL. */
	uint64_t (*segment_of)(const struct chunk_set *s, uint64_t index);
	/* Build a segment; blocks on I/O; no lock is held by the caller. */
	int (*load_segment)(struct chunk_set *s, uint64_t segment,
			    _Atomic uint64_t *gauge, struct buf **out,
			    struct error *err);
	/* Where is chunk `index`?  Pure, given its segment. */
	int (*locate)(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err);
	/* Make the decoded bytes of a CHUNK_FETCH chunk (their number may
	 * differ from chunk.size for generated texts); may be NULL. */
	int (*fetch)(struct chunk_set *s, uint64_t index,
		     _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err);
	/* Where, inside a fetched chunk, is slice `n` (a string)?  -errno: it
	 * could not be had, and *off, *len is the sentence.  Pure; NULL for
	 * sets without slices. */
	int (*slice)(const struct chunk_set *s, const struct buf *b, uint32_t n,
		     size_t *off, size_t *len);
	/* The chunk that sequential reading wants after `index`; false at the
	 * end, or when that is not known yet.  *carry is how many axes of the
	 * grid end between the two: 0 within a line of chunks, 1 from line to
	 * line, and so on; to another part it is more than any of them.  Pure;
	 * NULL: no prefetching. */
	bool (*next)(const struct chunk_set *s, uint64_t index, uint64_t *out,
		     unsigned *carry);
	/*
	 * Optional: what, beside the file c->file as it is now, decides the bytes
	 * of a CHUNK_FETCH chunk, all of it: chunks with equal texts are equal,
	 * also in another process, another day.  False: that cannot be said in
	 * `n` bytes, or they are not worth sharing.  Pure.
	 */
	bool (*origin)(const struct chunk_set *s, uint64_t index,
		       const struct chunk *c, char *text, size_t n);
	/* "run_0200-0300.h5: /data chunk 17", for sentences. */
	void (*describe)(const struct chunk_set *s, uint64_t index, char *buf,
			 size_t n);
};
struct chunk_set {
	const struct chunk_set_ops *ops;
	uint64_t id;           /* never reused; the cache's key */
	_Atomic uint64_t unit; /* typical decoded bytes of a chunk */
	_Atomic bool warned;   /* "chunk exceeds the cache" was said */
};
/* segment_of and locate of sets of generated texts: each is a CHUNK_FETCH chunk, whose size
 * nobody knows before. */
uint64_t chunk_text_segment_of(const struct chunk_set *s, uint64_t index);
int chunk_text_locate(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err);
/* The next free set id (process-wide, thread-safe). */
uint64_t chunk_set_new_id(void);

/* True when a reader may take the stored bytes as they are. */
bool chunk_is_verbatim(const struct chunk *c);
/* The same as chunk_set_ops.origin for a CHUNK_STORED chunk, a few lines. */
void chunk_origin(const struct chunk *c, FILE *out);
/* Memory needed while decoding, beside the result: stored bytes, scratch. */
size_t chunk_scratch(const struct chunk *c);
/* Read, decode and recode a CHUNK_STORED chunk into c->size bytes at `out`.
 * -EBADMSG, -ENOTSUP, -EIO, -ESTALE, -ENODATA, each with a sentence. */
int chunk_load(struct handles *h, const struct chunk *c, void *out,
	       struct error *err);

#endif
