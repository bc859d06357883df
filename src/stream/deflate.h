/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: deflated members of an archive, one after the other, as one stream. */
#ifndef STREAM_DEFLATE_H
#define STREAM_DEFLATE_H

#include "stream/stream.h"

/* Decoded bytes of a member that becomes one window; larger ones are decoded once,
 * for points to begin at. */
#define DEFLATE_WHOLE (UINT32_C(16) << 20)

/* As an archive's directory says. */
struct deflate_member {
	uint64_t pos, stored; /* raw deflate data (RFC 1951) in the backing */
	uint64_t size;        /* decoded */
	uint32_t crc;         /* CRC-32 of what it decodes to */
};
struct deflate_builder;
int deflate_builder_new(struct deflate_builder **out,
			const struct backing *from, struct error *err);
/* Members come in order of `pos`, and do not overlap.  *at is where what this one
 * decodes to begins in the stream.  Blocks for large ones.  -EBADMSG: its data are
 * damaged, and nothing was added.  All else is no fault of the data. */
int deflate_builder_add(struct deflate_builder *b,
			const struct deflate_member *m, uint64_t *at,
			struct error *err);
/*
 * These large members (n of them, copied) will be added, in this order, if they can: they are
 * decoded on `threads` threads before their turn comes, some at a time.  Without it each is
 * decoded when it is added.  No memory, or no threads: the same.
 */
void deflate_builder_expect(struct deflate_builder *b,
			    const struct deflate_member *m, size_t n,
			    unsigned threads);
/* The stream; `b` is freed, also on failure. */
int deflate_builder_finish(struct deflate_builder *b, struct stream **out,
			   struct error *err);
void deflate_builder_free(struct deflate_builder *b);
/* From an index, as stream_of_points. */
int deflate_of_points(struct stream **out, const struct backing *from,
		      const struct stream_point *points, uint64_t n,
		      struct blob *states, struct error *err);
/* Raw deflate data in memory: exactly `size` bytes, of this CRC-32.  -EBADMSG. */
int deflate_decode(const void *data, size_t n, void *to, size_t size,
		   uint32_t crc, struct error *err);

#endif
