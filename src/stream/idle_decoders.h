/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: idle decoders, which stopped in the middle of a stream and can continue
 * there. */
#ifndef STREAM_IDLE_DECODERS_H
#define STREAM_IDLE_DECODERS_H

#include "stream/stream_private.h"

/* Bytes of memory that the idle decoders of all streams may take, unless
 * stream_idle_decoders_limit allows more. */
#define IDLE_DECODERS_MEMORY ((size_t)40 << 20)

/* How a format decodes from a point on, piece by piece. */
struct idle_decoder_ops {
	/* Make a decoder at point `i`, which is not a POINT_LATER.  Return 0 or
	 * -errno. */
	int (*open)(void **out, const struct stream *s, uint64_t i,
		    struct error *err);
	/* Decode exactly the next n bytes, which belong to window `i`.  Return 0 or
	 * -errno. */
	int (*read)(void *decoder, const struct stream *s, uint64_t i,
		    unsigned char *out, size_t n, struct error *err);
	/* Return the bytes of memory that the decoder holds now. */
	size_t (*memory)(void *decoder);
	void (*close)(void *decoder);
};

/* An implementation of stream_format.window. s->own becomes the set of the stream's
 * decoders. */
int idle_decoder_window(struct stream *s, const struct idle_decoder_ops *ops,
			uint64_t i, unsigned char *out, struct error *err);
/* The implementation of stream_format.free_own that belongs to it. */
void idle_decoders_free(struct stream *s);

#endif
