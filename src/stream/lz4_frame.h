/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: LZ4 frames, legacy frames, and their blocks. */
#ifndef STREAM_LZ4_FRAME_H
#define STREAM_LZ4_FRAME_H

#include "stream/frame.h"

#define LZ4_HISTORY ((size_t)64 << 10)

struct lz4_frame {
	uint8_t flags; /* LZ4_* */
	size_t block;  /* decoded bytes of a block, at most */
	uint64_t at;   /* offset in the file where the frame begins */
	/* Decoded bytes of the frame; UINT64_MAX: not known. */
	uint64_t content;
};
#define LZ4_LEGACY 1
#define LZ4_LINKED 2      /* blocks may copy from those before them */
#define LZ4_BLOCK_SUMS 4  /* a checksum of 4 bytes follows each block */
#define LZ4_CONTENT_SUM 8 /* a checksum of 4 bytes follows the frame */
#define LZ4_FLAGS 15

struct lz4_block {
	size_t stored; /* stored bytes, without the size and the checksum */
	bool raw;      /* not compressed */
};
#define LZ4_BLOCK_HEAD 4

extern const struct frame_kind lz4_frames; /* legacy frames are among them */
/* Read the header of the next frame, past skippable ones, and pass it.  Return 1, 0
 * at the end of the data, or -errno. */
int lz4_next_frame(struct slide *f, struct lz4_frame *out, struct error *err);
/* Have the next block in memory: header, data and checksum, *n bytes, which are not
 * passed.  Return 1, or 0 if the frame ends: its end mark is then passed, a checksum
 * of the content is not.  Or -errno. */
int lz4_next_block(struct slide *f, const struct lz4_frame *frame,
		   struct lz4_block *out, size_t *n, struct error *err);
/* Read the checksum that follows a frame, and pass it.  Return 0 or -errno. */
int lz4_content_sum(struct slide *f, uint32_t *sum, struct error *err);
/* Return how many bytes the block decodes to, at most. */
size_t lz4_block_most(const struct lz4_frame *frame,
		      const struct lz4_block *block);
/* Decode a block whose header is at `p`.  `out` has room for n bytes, and the block
 * may copy from the `before` bytes before it.  Return the number of decoded bytes,
 * or -EBADMSG. */
ssize_t lz4_decode_block(const struct lz4_frame *frame, const unsigned char *p,
			 const struct lz4_block *block, unsigned char *out,
			 size_t n, size_t before, struct error *err);

/* The state of a point within a frame: 2 bytes for flags and block size of the
 * frame, then the history that blocks may copy from. lz4_state_make writes it to
 * `to`, which has LZ4_STATE_MOST bytes, and returns its size in bytes. */
#define LZ4_STATE_HEAD 2
#define LZ4_STATE_MOST (LZ4_STATE_HEAD + LZ4_HISTORY)
size_t lz4_state_make(const struct lz4_frame *frame, const void *history,
		      size_t n, unsigned char *to);
/* An implementation of stream_format.window. */
int lz4_window(struct stream *s, uint64_t i, unsigned char *out,
	       struct error *err);

#endif
