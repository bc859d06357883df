/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: decoders that wait in the middle of a stream to be taken on. */
#ifndef STREAM_PARKED_H
#define STREAM_PARKED_H

#include "stream/stream_private.h"

/* What they may take while they rest, of all streams together, where stream_memory
 * says no more. */
#define PARKED_MEMORY ((size_t)40 << 20)

/* How a format decodes from a point on, as far as it is asked to. */
struct parked_ops {
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
int parked_window(struct stream *s, const struct parked_ops *ops, uint64_t i,
		  unsigned char *out, struct error *err);
/* What stream_format.free_own is to do. */
void parked_free(struct stream *s);

#endif
