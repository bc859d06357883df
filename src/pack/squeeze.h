/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream, compressed in independent blocks, by all threads, written in order. */
#ifndef PACK_SQUEEZE_H
#define PACK_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum squeeze_codec {
	SQUEEZE_NONE,
	SQUEEZE_GZIP, /* each block a member (RFC 1952), without a time */
	SQUEEZE_ZSTD /* each block a frame, with its size and checksum (RFC 8878) */
};
struct squeeze_options {
	enum squeeze_codec codec;
	int level;    /* 1 to squeeze_most; 0: the usual one */
	size_t block; /* bytes, before compression: 1 to SQUEEZE_BLOCK_MOST */
	unsigned threads; /* >= 1; fewer work where memory is short */
	uint64_t memory; /* bytes for buffers; what one thread needs it takes */
	/*
	 * Store blocks that would hardly get smaller (JPEG): a few pieces of each are
	 * compressed first, and where that gains less than some percent, the block
	 * becomes stored deflate blocks, or raw blocks of zstd: nothing to decode.
	 * Without this all are compressed, for who named a codec wants that.
	 */
	bool sample;
};
#define SQUEEZE_BLOCK_MOST (UINT32_C(64) << 20)
/* The usual level, and the highest. */
int squeeze_usual(enum squeeze_codec c);
int squeeze_most(enum squeeze_codec c);

/* What comes out. */
struct squeeze_block {
	const void *data; /* `size` bytes to be written */
	size_t size;
	uint64_t at;   /* bytes that were added before this block */
	size_t len;    /* bytes of them in it */
	uint32_t crc;  /* CRC-32 (RFC 1952) of these */
	bool squeezed; /* false: stored */
};
struct squeeze;
/* Takes blocks in order, on any thread, but on one at a time; 0 or -errno. */
typedef int squeeze_write(void *ctx, const struct squeeze_block *b,
			  struct error *err);
/* Threads wait for the first block.  -EINVAL: a level that the codec has not. */
int squeeze_new(struct squeeze **out, const struct squeeze_options *o,
		squeeze_write *write, void *ctx, struct error *err);
/* The next `n` bytes, copied.  Waits while all buffers are full.  The first failure
 * of a codec or of `write` is that of every later call; nothing is written after it. */
int squeeze_add(struct squeeze *s, const void *data, size_t n,
		struct error *err);
/* Bytes in the block that is being filled; 0: a new one begins. */
size_t squeeze_filled(const struct squeeze *s);
/* End the block here: what follows begins a new one.  Nothing if it is empty. */
int squeeze_cut(struct squeeze *s, struct error *err);
/* Everything was written.  A stream of nothing has one empty block, so that it is a
 * stream (but for SQUEEZE_NONE).  Nothing may follow. */
int squeeze_finish(struct squeeze *s, struct error *err);
/* Ends threads; what was not written by then is not written.  `s` may be NULL. */
void squeeze_free(struct squeeze *s);

#endif
