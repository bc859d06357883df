/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream, compressed in independent blocks by all threads and written in order. */
#ifndef PACK_SQUEEZE_H
#define PACK_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum squeeze_codec {
	SQUEEZE_NONE,
	SQUEEZE_GZIP, /* each block is a member (RFC 1952) without a time */
	/* Each block is a frame with its size and checksum (RFC 8878). */
	SQUEEZE_ZSTD
};
struct squeeze_options {
	enum squeeze_codec codec;
	int level;    /* 1 to squeeze_most; 0: squeeze_usual */
	size_t block; /* bytes before compression: 1 to SQUEEZE_BLOCK_MOST */
	unsigned threads; /* >= 1; fewer are used where memory is short */
	/* Bytes for buffers; one thread gets what it needs in any case. */
	uint64_t memory;
	/*
	 * Store blocks that would hardly become smaller (JPEG): a few pieces of each
	 * block are compressed first, and if that saves less than a few percent, the
	 * block becomes stored deflate blocks or raw zstd blocks, which need no decoding.
	 * If false, all blocks are compressed, because the user named a codec.
	 */
	bool sample;
};
#define SQUEEZE_BLOCK_MOST (UINT32_C(64) << 20)
/* The default level and the highest level of a codec. */
int squeeze_usual(enum squeeze_codec c);
int squeeze_most(enum squeeze_codec c);

/* A compressed block. */
struct squeeze_block {
	const void *data; /* `size` bytes to be written */
	size_t size;
	uint64_t at;   /* bytes of the stream before this block */
	size_t len;    /* bytes of the stream in it */
	uint32_t crc;  /* CRC-32 (RFC 1952) of those bytes */
	bool squeezed; /* false: stored */
};
struct squeeze;
/* Called for each block in order, by any thread but one at a time.  Returns 0 or
 * -errno. */
typedef int squeeze_write(void *ctx, const struct squeeze_block *b,
			  struct error *err);
/* Start threads, which wait for the first block.  Return -EINVAL if the codec does not
 * have that level, or the block size is out of range. */
int squeeze_new(struct squeeze **out, const struct squeeze_options *o,
		squeeze_write *write, void *ctx, struct error *err);
/* Append `n` bytes, which are copied.  Waits while all buffers are full.  Once a codec or
 * `write` has failed, this and all later calls return that error, and nothing more is
 * written. */
int squeeze_add(struct squeeze *s, const void *data, size_t n,
		struct error *err);
/* Bytes in the block that is being filled; 0 if the next byte begins a new block. */
size_t squeeze_filled(const struct squeeze *s);
/* End the current block; the next byte begins a new one.  Does nothing if the block is
 * empty. */
int squeeze_cut(struct squeeze *s, struct error *err);
/* Wait until everything was written.  An empty stream gets one empty block, so that it is
 * a valid stream (not for SQUEEZE_NONE).  Nothing may be added afterwards. */
int squeeze_finish(struct squeeze *s, struct error *err);
/* End the threads and free `s`, which may be NULL.  Blocks that were not written by then
 * are dropped. */
void squeeze_free(struct squeeze *s);

#endif
