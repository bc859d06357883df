/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip files (RFC 1952): members, and the compressed bytes they are read from. */
#ifndef STREAM_GZIP_H
#define STREAM_GZIP_H

#include "stream/inflate.h"
#include "stream/stream_private.h"

/* Compressed bytes in memory, at most. */
#define GZIP_FEED ((size_t)256 << 10)
/* A state: where the block's header is in bits, or that the point is between two
 * blocks; then the bytes before the point. */
#define GZIP_STATE_HEAD 8
#define GZIP_NO_HEADER UINT64_MAX

/* Compressed bytes on their way into a decoder: of a scan, or from an offset of a
 * stream's file on. */
struct gzip_feed {
	struct inflate x;
	struct stream_scan *scan;    /* or, where this is NULL: */
	const struct stream *stream; /* up to `limit` */
	uint64_t limit;
	bool quiet;         /* no warnings */
	unsigned char *buf; /* the caller's */
	size_t size;        /* more than INFLATE_HEADER_MAX */
};

/* What comes next is at offset `at` (0 for a scan); the decoder's block stays. */
void gzip_feed_begin(struct gzip_feed *f, uint64_t at);
/* More bytes for the decoder; feed->x.more says whether there may be more still. */
int gzip_feed_more(struct gzip_feed *f, struct error *err);
/* 1, or 0 at the end, or -errno.  Between codes of whole bytes only. */
int gzip_feed_byte(struct gzip_feed *f, unsigned char *c, struct error *err);
/* Offset of the next byte. */
uint64_t gzip_feed_at(const struct gzip_feed *f);

/*
 * The header of a member, with all that it may have.  1: its data follow, *at is
 * where it began (zeros before it are passed over: tapes pad); 0: there are no more
 * members.  `first`: there must be one.  What follows the last member and is no
 * gzip data is left alone, with a warning, as gzip(1) does, unless it might be a
 * member whose header was damaged.  -EBADMSG; -EIO: cut off.
 */
int gzip_header(struct gzip_feed *f, bool first, uint64_t *at,
		struct error *err);
/* What follows the data: CRC-32, and size modulo 2^32. */
int gzip_trailer(struct gzip_feed *f, uint32_t *crc, uint32_t *size,
		 struct error *err);

/* As stream_format.window. */
int gzip_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err);

#endif
