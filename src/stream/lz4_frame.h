/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: LZ4 frames and legacy frames, their blocks. */
#ifndef STREAM_LZ4_FRAME_H
#define STREAM_LZ4_FRAME_H

#include "stream/frame.h"

#define LZ4_HISTORY ((size_t)64 << 10)

struct lz4_frame {
	uint8_t flags;    /* LZ4_* */
	size_t block;     /* decoded bytes of one, at most */
	uint64_t at;      /* where it begins in the file */
	uint64_t content; /* decoded bytes; UINT64_MAX: not said */
};
#define LZ4_LEGACY 1
#define LZ4_LINKED 2      /* blocks refer to those before them */
#define LZ4_BLOCK_SUMS 4  /* 4 bytes follow each block, ... */
#define LZ4_CONTENT_SUM 8 /* ... 4 bytes the end of the frame */
#define LZ4_FLAGS 15

struct lz4_block {
	size_t stored; /* bytes of it, without size and sum */
	bool raw;      /* not compressed */
};
#define LZ4_BLOCK_HEAD 4

extern const struct frame_kind lz4_frames; /* legacy ones, too */
/* The header of the next frame, past skippable ones; it is passed.  1, 0 at the
 * end, -errno. */
int lz4_next_frame(struct slide *f, struct lz4_frame *out, struct error *err);
/* The next block is there, header, bytes and sum, *n of them, not passed: 1; 0
 * where the frame ends, its end mark is passed, a sum of the content is not. */
int lz4_next_block(struct slide *f, const struct lz4_frame *frame,
		   struct lz4_block *out, size_t *n, struct error *err);
/* The sum behind a frame, which is passed. */
int lz4_content_sum(struct slide *f, uint32_t *sum, struct error *err);
/* Decoded bytes of a block, at most. */
size_t lz4_block_most(const struct lz4_frame *frame,
		      const struct lz4_block *block);
/* Decode a block of which `p` is the header.  `out` has room for n bytes, and the
 * `before` bytes before it may be referred to.  Decoded bytes, or -EBADMSG. */
ssize_t lz4_decode_block(const struct lz4_frame *frame, const unsigned char *p,
			 const struct lz4_block *block, unsigned char *out,
			 size_t n, size_t before, struct error *err);

/* What a point within a frame needs: how the frame is, and what blocks refer to. */
#define LZ4_STATE_HEAD 2
#define LZ4_STATE_MOST (LZ4_STATE_HEAD + LZ4_HISTORY)
size_t lz4_state_make(const struct lz4_frame *frame, const void *history,
		      size_t n, unsigned char *to);
/* What stream_format.window is to do. */
int lz4_window(struct stream *s, uint64_t i, unsigned char *out,
	       struct error *err);

#endif
