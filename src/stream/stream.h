/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed streams with random access: windows between seek points. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <stdbool.h>

#include "extent/chunk.h"
#include "stream/blob.h"
#include "stream/input.h"

/*
 * What a compressed file decodes to, cut into windows.  Window i begins at seek
 * point i and ends where the next one begins; its number is its index in a chunk
 * set, so windows are decoded by the store, in parallel, and kept in its cache.
 *
 *	compressed   |--------|-----|----------|---|       in
 *	decoded      |------------|---------|------|---|   out
 *	              point 0      1         2      3
 *
 * The points are learnt in one pass over the whole stream, during which somebody
 * else reads the decoded bytes (the scanner of a tar, for example), or they come
 * from an index.  That pass checks every checksum the format has, and makes one of
 * its own of each window; a window that decodes to anything else later is an
 * error.
 */
struct stream;

/* One seek point, as it is kept in memory and in an index; 40 bytes. */
struct stream_point {
	uint64_t out;        /* decoded bytes before it */
	uint64_t in;         /* offset of its first compressed byte; with `bits`
				of the byte before it still unread */
	uint64_t state;      /* where in the blob the decoder's state is */
	uint32_t state_size; /* bytes there; 0: none is needed */
	uint32_t size;       /* decoded bytes of the window */
	uint32_t crc;        /* CRC-32 (zlib's polynomial) of these */
	uint8_t bits;        /* 0 to 7 */
	uint8_t flags;       /* POINT_* */
	uint16_t unused;     /* 0 */
};
#define POINT_BAD 1   /* a checksum of the format failed over it: -EBADMSG */
#define POINT_START 2 /* a member, frame or block begins: no state is needed */
#define POINT_LATER \
	4 /* only a decoder that comes from an earlier point can go
			 on here: there is no state, and none is possible */

/* Windows are about this large, and never beyond the most. */
#define STREAM_WINDOW (UINT32_C(1) << 20)
#define STREAM_WINDOW_MAX (UINT32_C(64) << 20)

struct stream_format;
/* The format that these first bytes are of; NULL: none. */
const struct stream_format *stream_probe(const unsigned char *head, size_t n);
const struct stream_format *stream_find(const char *name);
/* "gzip" */
const char *stream_format_name(const struct stream_format *f);
/* The name of what "data.npy.gz" decodes to: "data.npy"; "x.tgz": "x.tar"; a name
 * without the format's suffix stays as it is.  malloc'ed. */
char *stream_decoded_name(const struct stream_format *f, const char *name);
/* Names of all formats, separated by commas: "gzip, bzip2, xz, zstd, lz4". */
const char *stream_format_names(void);

/*
 * First pass.  `from` are the compressed bytes.  The input decodes them, on
 * `threads` threads where the format allows (0 or 1: on the caller's), and takes
 * notes.  Damage: the input's read fails with -EBADMSG, or -EIO where the
 * compressed bytes end early, after all bytes before it were delivered.
 */
struct stream_scan;
int stream_scan_new(struct stream_scan **out, const struct stream_format *f,
		    const struct backing *from, unsigned threads,
		    struct error *err);
struct input *stream_scan_input(struct stream_scan *s); /* borrowed */
/* For a progress bar: from now on `so_far` is told, on the reader's thread, how many
 * compressed bytes were read, whenever these are more. */
void stream_scan_tell(struct stream_scan *s,
		      void (*so_far)(void *ctx, uint64_t consumed), void *ctx);
/* Keep what is decoded, as far as stream_keep permits: the stream's windows are at first
 * made of that.  Before the first byte is read. */
void stream_scan_keep(struct stream_scan *s);
/* Read what is left to its end, and hand over the stream.  With damage: the
 * stream of what could be decoded, *damage set and -EBADMSG (*out is set), so the
 * intact part can be shown.  Any other failure: *out is NULL.  Frees `s`. */
int stream_scan_finish(struct stream_scan *s, struct stream **out,
		       struct error *damage);
void stream_scan_free(struct stream_scan *s);

/* From an index: every number is checked against the others and the size of
 * `from`.  `points` is copied, `states` becomes the stream's. */
int stream_of_points(struct stream **out, const struct stream_format *f,
		     const struct backing *from,
		     const struct stream_point *points, uint64_t n,
		     struct blob *states, struct error *err);
void stream_free(struct stream *s);

/* Decoded bytes; of the intact part where there is damage. */
uint64_t stream_size(const struct stream *s);
const struct stream_point *stream_points(const struct stream *s, uint64_t *n);
const struct blob *stream_states(const struct stream *s);
const struct stream_format *stream_format_of(const struct stream *s);
const struct backing *stream_from(const struct stream *s);
/* The window that decoded byte `off` is in; pure, O(log n). */
uint64_t stream_window_at(const struct stream *s, uint64_t off);
struct chunk_set *stream_set(struct stream *s);
/* False: the first pass, if it was just made, found bytes without checksums of the
 * format.  (Each window has one of ours since then.) */
bool stream_has_checksums(const struct stream *s);
/* Decoded bytes that must be decoded to get at one byte, in the worst case: a
 * window's, or, where points are POINT_LATER, all up to it. */
uint64_t stream_worst(const struct stream *s);

/* What decoders may take that rest in the middle of streams, of all of them; no less
 * than 40 MiB.  What is more than these counts in the budget of caches. */
void stream_memory(uint64_t bytes);
/* How many decoded bytes of first passes may be kept, of all streams (at first: none);
 * with `beside` they count in the budget of caches.  For scans that begin later. */
void stream_keep(uint64_t bytes, bool beside);
/* How many are, and were not taken by anybody. */
uint64_t stream_kept(void);
/* Processes that are forked from now on have none of it, until stream_keep is called again:
 * those that read damaged files for us may write anywhere.  The daemon has been forked. */
void stream_keep_alone(void);

#endif
