/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: a sliding buffer over compressed bytes. */
#ifndef STREAM_SLIDE_H
#define STREAM_SLIDE_H

#include "stream/stream_private.h"

/*
 * Parsers look at the next bytes (slide_need), and pass those that they have parsed
 * (slide_drop).  The bytes come from a first pass, or from an offset of a stream's file
 * on, or are in memory.
 */
struct slide {
	struct stream_scan *scan;    /* or NULL */
	const struct stream *stream; /* or NULL */
	uint64_t next;               /* offset of the next byte to read */
	/* Offset of the end of the data; unused with `scan`. */
	uint64_t end;
	uint64_t at; /* offset of data[0] */
	/* The buffered bytes; valid until the next call. */
	const unsigned char *data;
	size_t n;           /* number of buffered bytes */
	unsigned char *buf; /* owned */
	size_t room;
};
void slide_of_scan(struct slide *f, struct stream_scan *s);
void slide_of_stream(struct slide *f, const struct stream *s, uint64_t in);
/* `data` is borrowed; its first byte is at offset `at` of the file. */
void slide_of_memory(struct slide *f, const void *data, size_t n, uint64_t at);
void slide_free(struct slide *f);

/* Have n bytes at f->data, or all that there are.  Return how many of the n there
 * are (f->n may be more), or -errno.  Blocks. */
ssize_t slide_need(struct slide *f, size_t n, struct error *err);
/* Read all compressed bytes from which n bytes of window `i` are decoded, if their
 * number is known: one read instead of many.  Return 0 or -errno.  Blocks. */
int slide_need_window(struct slide *f, uint64_t i, size_t n, struct error *err);
/* Pass n buffered bytes. */
void slide_drop(struct slide *f, size_t n);
/* Pass n bytes, buffered or not.  Return how many there were, or -errno. */
int64_t slide_skip(struct slide *f, uint64_t n, struct error *err);
/* Copy n bytes to `to`, or as many as there are, and pass them.  Return their number
 * or -errno. */
ssize_t slide_read(struct slide *f, void *to, size_t n, struct error *err);

#endif
