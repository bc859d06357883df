/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: Zstandard frames, their headers, and a cursor that decodes them. */
#ifndef STREAM_ZSTD_FRAME_H
#define STREAM_ZSTD_FRAME_H

#include <zstd.h>

#include "stream/frame.h"

#define ZSTD_BLOCK_MOST ((size_t)128 << 10)

/* The header of a frame (RFC 8878, section 3.1.1.1). */
struct zstd_frame {
	size_t header;    /* bytes of the header, with the magic number */
	uint64_t window;  /* bytes of history a decoder has to keep */
	uint64_t content; /* decoded bytes; UINT64_MAX: not known */
	size_t block;     /* decoded bytes of a block, at most */
	bool checksum;    /* a checksum of 4 bytes follows the last block */
};
struct zstd_block {
	size_t stored;  /* bytes that follow the 3 bytes of its header */
	size_t decoded; /* decoded bytes, at most */
	bool last;
};
extern const struct frame_kind zstd_frames;
/* Go to the next frame, past skippable ones, and parse its header without passing
 * it.  Return 1, 0 at the end of the data, or -errno. */
int zstd_next_frame(struct slide *f, struct zstd_frame *out, struct error *err);
/* Parse the header `p` of a block.  Return 0 or -EBADMSG. */
int zstd_parse_block(const struct zstd_frame *frame, const unsigned char p[3],
		     struct zstd_block *out, struct error *err);

/* A cursor, which decodes one frame after the other, a piece at a time. */
struct zstd_cursor {
	struct slide feed; /* set by the user */
	ZSTD_DCtx *d;
	struct zstd_frame frame;
	uint64_t done; /* decoded bytes of the frame so far */
	enum {
		ZSTD_BETWEEN, /* frames */
		ZSTD_BLOCKS,  /* a block is next */
		ZSTD_FLUSH,   /* bytes of a block are left in the decoder */
		ZSTD_CHECK    /* the checksum is next */
	} state;
	bool last; /* the block is the last one of the frame */
	/* Do not decode a whole frame in one step, but show where blocks begin. */
	bool blocks;
	size_t left; /* input bytes of the block that are left in ZSTD_FLUSH */
	uint64_t file_size; /* bytes of the file; set by the user */
};
void zstd_cursor_free(struct zstd_cursor *c);
/*
 * Decode a block, or a small frame, or the rest of a block: *got bytes, at most n,
 * perhaps 0.  Return 1, 0 if the feed ends between frames, -EIO if it ends elsewhere,
 * -EBADMSG if it is damaged, -EILSEQ if all of a frame was decoded and its checksum
 * differs (the cursor may go on after it), or another -errno.
 */
int zstd_cursor_step(struct zstd_cursor *c, unsigned char *out, size_t n,
		     size_t *got, struct error *err);

/* An implementation of stream_format.window. */
int zstd_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err);

#endif
