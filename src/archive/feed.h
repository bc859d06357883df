/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: a sliding buffer over compressed bytes. */
#ifndef ARCHIVE_FEED_H
#define ARCHIVE_FEED_H

#include "archive/stream_private.h"

/*
 * Parsers look at what comes next (feed_need), and pass what they have understood
 * (feed_drop).  The bytes come from a first pass, from a stream at a place, or are
 * in memory.
 */
struct feed {
	struct stream_scan *scan;    /* or NULL */
	const struct stream *stream; /* or NULL */
	uint64_t next;               /* offset of the next byte to get */
	uint64_t end;                /* of what there is; not with `scan` */
	uint64_t at;                 /* offset of data[0] */
	const unsigned char *data;   /* changes with every call */
	size_t n;                    /* bytes there */
	unsigned char *buf;          /* owned */
	size_t room;
};
void feed_of_scan(struct feed *f, struct stream_scan *s);
void feed_of_stream(struct feed *f, const struct stream *s, uint64_t in);
/* `data` is borrowed; its first byte is at offset `at` of the file. */
void feed_of_memory(struct feed *f, const void *data, size_t n, uint64_t at);
void feed_free(struct feed *f);

/* Have `n` bytes at f->data, or all that there are: how many of the n (f->n may be
 * more), or -errno. */
ssize_t feed_need(struct feed *f, size_t n, struct error *err);
/* Have what `n` bytes of window `i` are decoded from, where it is clear how much
 * that is: one read instead of many.  0, -errno. */
int feed_need_window(struct feed *f, uint64_t i, size_t n, struct error *err);
/* Pass n bytes that are there. */
void feed_drop(struct feed *f, size_t n);
/* Pass n bytes, there or not; how many there were, -errno. */
int64_t feed_skip(struct feed *f, uint64_t n, struct error *err);
/* Exactly n bytes to `to`, passing them, or as many as there are. */
ssize_t feed_read(struct feed *f, void *to, size_t n, struct error *err);

#endif
