/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: Zstandard frames, their headers, and a cursor that decodes them. */
#ifndef STREAM_ZSTD_FRAME_H
#define STREAM_ZSTD_FRAME_H

#include <zstd.h>

#include "stream/frame.h"

#define ZSTD_BLOCK_MOST ((size_t)128 << 10)

/* RFC 8878, 3.1.1.1. */
struct zstd_frame {
	size_t header;    /* bytes of it, magic included */
	uint64_t window;  /* bytes of history a decoder has to keep */
	uint64_t content; /* decoded bytes; UINT64_MAX: not said */
	size_t block;     /* decoded bytes of a block, at most */
	bool checksum;    /* 4 bytes of it follow the last block */
};
struct zstd_block {
	size_t stored;  /* bytes that follow the 3 of its header */
	size_t decoded; /* at most */
	bool last;
};
extern const struct frame_kind zstd_frames;
/* Go to the next frame, past skippable ones, and parse its header, which is not
 * passed: 1, 0 at the end, -errno. */
int zstd_next_frame(struct slide *f, struct zstd_frame *out, struct error *err);
/* The block whose header is `p`. */
int zstd_parse_block(const struct zstd_frame *frame, const unsigned char p[3],
		     struct zstd_block *out, struct error *err);

/* What decodes one frame after the other, a piece at a time. */
struct zstd_cursor {
	struct slide feed; /* its user makes it */
	ZSTD_DCtx *d;
	struct zstd_frame frame;
	uint64_t done; /* decoded bytes of the frame */
	enum {
		ZSTD_BETWEEN, /* frames */
		ZSTD_BLOCKS,  /* a block comes next */
		ZSTD_FLUSH,   /* bytes of a block are left in the decoder */
		ZSTD_CHECK    /* the checksum comes next */
	} state;
	bool last;   /* block of the frame */
	bool blocks; /* no frame in one step: show where blocks begin */
	size_t left; /* bytes of the block that ZSTD_FLUSH goes on with */
	uint64_t file_size; /* its user says it */
};
void zstd_cursor_free(struct zstd_cursor *c);
/*
 * Decode a block, or a small frame, or what is left of a block: *got of at most n
 * bytes, perhaps 0.  1; 0: the feed ends between frames; -EIO: it ends elsewhere;
 * -EBADMSG; -EILSEQ: all of a frame was decoded, its checksum differs, the cursor
 * may go on behind it.
 */
int zstd_cursor_step(struct zstd_cursor *c, unsigned char *out, size_t n,
		     size_t *got, struct error *err);

/* What stream_format.window is to do. */
int zstd_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err);

#endif
