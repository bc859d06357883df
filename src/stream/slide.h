/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: a sliding buffer over compressed bytes. */
#ifndef STREAM_SLIDE_H
#define STREAM_SLIDE_H

#include "stream/stream_private.h"

/*
 * Parsers look at what comes next (slide_need), and pass what they have understood
 * (slide_drop).  The bytes come from a first pass, from a stream at a place, or are
 * in memory.
 */
struct slide {
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
void slide_of_scan(struct slide *f, struct stream_scan *s);
void slide_of_stream(struct slide *f, const struct stream *s, uint64_t in);
/* `data` is borrowed; its first byte is at offset `at` of the file. */
void slide_of_memory(struct slide *f, const void *data, size_t n, uint64_t at);
void slide_free(struct slide *f);

/* Have `n` bytes at f->data, or all that there are: how many of the n (f->n may be
 * more), or -errno. */
ssize_t slide_need(struct slide *f, size_t n, struct error *err);
/* Have what `n` bytes of window `i` are decoded from, where it is clear how much
 * that is: one read instead of many.  0, -errno. */
int slide_need_window(struct slide *f, uint64_t i, size_t n, struct error *err);
/* Pass n bytes that are there. */
void slide_drop(struct slide *f, size_t n);
/* Pass n bytes, there or not; how many there were, -errno. */
int64_t slide_skip(struct slide *f, uint64_t n, struct error *err);
/* Exactly n bytes to `to`, passing them, or as many as there are. */
ssize_t slide_read(struct slide *f, void *to, size_t n, struct error *err);

#endif
