/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: deflated members of an archive, one after the other, as one stream. */
#ifndef STREAM_DEFLATE_H
#define STREAM_DEFLATE_H

#include "stream/stream.h"

/* A member of up to this many decoded bytes becomes one window.  Larger ones are
 * decoded once, to find points within them. */
#define DEFLATE_WHOLE (UINT32_C(16) << 20)

/* A deflated member, as the archive's directory describes it. */
struct deflate_member {
	/* Place and bytes of the raw deflate data (RFC 1951) in the backing. */
	uint64_t pos, stored;
	uint64_t size; /* decoded bytes */
	uint32_t crc;  /* CRC-32 of the decoded bytes */
};
struct deflate_builder;
int deflate_builder_new(struct deflate_builder **out,
			const struct backing *from, struct error *err);
/* Add a member.  Members come in order of `pos` and must not overlap.  *at is where
 * its decoded bytes begin in the stream.  Blocks for large members.  Return 0,
 * -EBADMSG if its data are damaged (then nothing was added), or -errno for failures
 * that are not due to the data. */
int deflate_builder_add(struct deflate_builder *b,
			const struct deflate_member *m, uint64_t *at,
			struct error *err);
/*
 * Announce n large members (copied) that will be added in this order: some of them at a
 * time are decoded on `threads` threads before their turn comes.  Members that were not
 * announced are decoded when they are added; so are all if there is no memory or no
 * thread.
 */
void deflate_builder_expect(struct deflate_builder *b,
			    const struct deflate_member *m, size_t n,
			    unsigned threads);
/* Make the stream.  `b` is freed, also on failure.  Return 0 or -errno. */
int deflate_builder_finish(struct deflate_builder *b, struct stream **out,
			   struct error *err);
void deflate_builder_free(struct deflate_builder *b);
/* Make a stream from the points of an index, as stream_of_points. */
int deflate_of_points(struct stream **out, const struct backing *from,
		      const struct stream_point *points, uint64_t n,
		      struct blob *states, struct error *err);
/* Decode raw deflate data in memory to exactly `size` bytes with this CRC-32.
 * Return 0, -EBADMSG or -ENOMEM. */
int deflate_decode(const void *data, size_t n, void *to, size_t size,
		   uint32_t crc, struct error *err);

#endif
