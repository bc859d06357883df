/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip files (RFC 1952): headers and trailers of members, and the feed of compressed
 * bytes. */
#ifndef STREAM_GZIP_H
#define STREAM_GZIP_H

#include "stream/inflate.h"
#include "stream/stream_private.h"

/* Largest buffer for compressed bytes, in bytes. */
#define GZIP_FEED ((size_t)256 << 10)
/* A state: 8 bytes with the offset of the block's header in bits, or GZIP_NO_HEADER
 * if the point is between two blocks; then the bytes before the point. */
#define GZIP_STATE_HEAD 8
#define GZIP_NO_HEADER UINT64_MAX

/* The feed: compressed bytes on their way into a decoder, from a scan, or from an
 * offset of a stream's file on. */
struct gzip_feed {
	struct inflate x;
	struct stream_scan *scan;    /* or NULL: `stream` is read */
	const struct stream *stream; /* read up to offset `limit` */
	uint64_t limit;
	bool quiet;         /* no warnings */
	unsigned char *buf; /* owned by the caller */
	size_t size;        /* bytes of `buf`: more than INFLATE_HEADER_MAX */
};

/* Let the feed begin at offset `at` (0 for a scan).  The decoder's block stays. */
void gzip_feed_begin(struct gzip_feed *f, uint64_t at);
/* Read more bytes for the decoder; feed->x.more says whether still more may follow.
 * Return 0 or -errno. */
int gzip_feed_more(struct gzip_feed *f, struct error *err);
/* Take one byte.  Return 1, 0 at the end, or -errno.  Only where the decoder is at a
 * whole byte. */
int gzip_feed_byte(struct gzip_feed *f, unsigned char *c, struct error *err);
/* Return the offset of the next byte. */
uint64_t gzip_feed_at(const struct gzip_feed *f);

/*
 * Read the header of a member with all its optional fields (RFC 1952, section 2.3).
 * Return 1 if its data follow; *at is where the header began (zeros before it are
 * skipped: tapes are padded).  Return 0 if there are no more members; with `first`
 * there must be one.  Bytes after the last member that are not gzip data are ignored
 * with a warning, as by gzip(1), unless they may be a member with a damaged header.
 * Return -EBADMSG for a damaged header, -EIO if it is cut off, or -errno.
 */
int gzip_header(struct gzip_feed *f, bool first, uint64_t *at,
		struct error *err);
/* Read what follows the data: CRC-32, and size modulo 2^32.  Return 0 or -errno. */
int gzip_trailer(struct gzip_feed *f, uint32_t *crc, uint32_t *size,
		 struct error *err);

/* An implementation of stream_format.window. */
int gzip_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err);

#endif
