/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: decoders that wait in the middle of a stream to be taken on. */
#ifndef STREAM_IDLE_DECODERS_H
#define STREAM_IDLE_DECODERS_H

#include "stream/stream_private.h"

/* What they may take while they rest, of all streams together, where stream_memory
 * says no more. */
#define IDLE_DECODERS_MEMORY ((size_t)40 << 20)

/* How a format decodes from a point on, as far as it is asked to. */
struct idle_decoder_ops {
	/* A decoder at point `i`, which is no POINT_LATER. */
	int (*open)(void **out, const struct stream *s, uint64_t i,
		    struct error *err);
	/* The next n decoded bytes, exactly; they are those of window `i`. */
	int (*read)(void *decoder, const struct stream *s, uint64_t i,
		    unsigned char *out, size_t n, struct error *err);
	/* Bytes of memory that it holds now. */
	size_t (*memory)(void *decoder);
	void (*close)(void *decoder);
};

/* What stream_format.window is to do; s->own becomes the parking lot. */
int idle_decoder_window(struct stream *s, const struct idle_decoder_ops *ops,
			uint64_t i, unsigned char *out, struct error *err);
/* What stream_format.free_own is to do. */
void idle_decoders_free(struct stream *s);

#endif
