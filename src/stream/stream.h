/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed streams with random access: windows between seek points. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <stdbool.h>

#include "extent/chunk.h"
#include "stream/blob.h"
#include "stream/input.h"

/*
 * The decoded bytes of a compressed file, cut into windows.  Window i begins at seek
 * point i and ends where the next one begins; its number is its index in a chunk set,
 * so the store decodes windows in parallel and caches them.
 *
 *	compressed   |--------|-----|----------|---|       in
 *	decoded      |------------|---------|------|---|   out
 *	              point 0      1         2      3
 *
 * The points are learnt in one pass over the whole stream, during which a scanner (of a
 * tar, for example) reads the decoded bytes, or they come from an index.  The pass
 * verifies every checksum of the format, and computes one of each window; if a window
 * later decodes to other bytes, reading it is an error.
 */
struct stream;

/* A seek point, as it is in memory and in an index: 40 bytes. */
struct stream_point {
	uint64_t out;        /* decoded bytes before it */
	uint64_t in;         /* offset of its first compressed byte; with `bits`
				of the byte before it still unread */
	uint64_t state;      /* offset of the decoder's state in the blob */
	uint32_t state_size; /* bytes of the state; 0: none is needed */
	uint32_t size;       /* decoded bytes of the window */
	uint32_t crc;        /* CRC-32 (zlib's polynomial) of the window */
	uint8_t bits;        /* 0 to 7 */
	uint8_t flags;       /* POINT_* */
	uint16_t unused;     /* 0 */
};
/* A checksum of the format over its window failed: reading it is -EBADMSG. */
#define POINT_BAD 1
#define POINT_START 2 /* a member, frame or block begins: no state is needed */
/* Only a decoder that comes from an earlier point can go on here: no state is stored, and
 * none is possible. */
#define POINT_LATER 4

/* Usual and largest size of windows, in decoded bytes. */
#define STREAM_WINDOW (UINT32_C(1) << 20)
#define STREAM_WINDOW_MAX (UINT32_C(64) << 20)

struct stream_format;
/* Return the format of a file with these first n bytes, or NULL. */
const struct stream_format *stream_probe(const unsigned char *head, size_t n);
const struct stream_format *stream_find(const char *name);
/* Return the name of a format: "gzip". */
const char *stream_format_name(const struct stream_format *f);
/* Return the name of the decoded file, malloc'ed: "data.npy" for "data.npy.gz",
 * "x.tar" for "x.tgz".  A name without a suffix of the format stays as it is.
 * Return NULL when memory is out. */
char *stream_decoded_name(const struct stream_format *f, const char *name);
/* Return the names of all formats, separated by commas: "gzip, bzip2, xz, zstd,
 * lz4". */
const char *stream_format_names(void);

/*
 * The first pass.  `from` is the compressed bytes.  The input of the scan decodes them
 * and notes points, on `threads` threads if the format allows that (0 or 1: on the
 * caller's thread).  On damage, all bytes before it are delivered; then reading the
 * input fails with -EBADMSG, or with -EIO if the compressed bytes end early.
 */
struct stream_scan;
int stream_scan_new(struct stream_scan **out, const struct stream_format *f,
		    const struct backing *from, unsigned threads,
		    struct error *err);
struct input *stream_scan_input(struct stream_scan *s); /* borrowed from `s` */
/* For a progress bar: call `so_far` with the number of compressed bytes read, on the
 * reader's thread, each time it has grown. */
void stream_scan_tell(struct stream_scan *s,
		      void (*so_far)(void *ctx, uint64_t consumed), void *ctx);
/* Keep decoded bytes, as far as stream_first_pass_limit permits: windows are taken from them at
 * their first read.  To be called before the first byte is read. */
void stream_scan_keep(struct stream_scan *s);
/* Read the rest of the input and hand over the stream.  `s` is freed.  Return 0 and
 * set *out.  On damage return -EBADMSG and set *damage, and set *out to the stream
 * of the part that could be decoded, so that its intact windows can be shown.  On
 * any other failure return -errno with *out NULL. */
int stream_scan_finish(struct stream_scan *s, struct stream **out,
		       struct error *damage);
void stream_scan_free(struct stream_scan *s);

/* Make a stream from the n points of an index.  Every number is checked against the
 * others and the size of `from`.  `points` is copied; the stream owns `states`,
 * which is freed on failure.  Return 0, -EBADMSG or -ENOMEM. */
int stream_of_points(struct stream **out, const struct stream_format *f,
		     const struct backing *from,
		     const struct stream_point *points, uint64_t n,
		     struct blob *states, struct error *err);
void stream_free(struct stream *s);

/* Return the number of decoded bytes; of the part that could be decoded if there is
 * damage. */
uint64_t stream_size(const struct stream *s);
const struct stream_point *stream_points(const struct stream *s, uint64_t *n);
const struct blob *stream_states(const struct stream *s);
const struct stream_format *stream_format_of(const struct stream *s);
const struct backing *stream_from(const struct stream *s);
/* Return the window that has decoded byte `off`.  Pure, O(log n). */
uint64_t stream_window_at(const struct stream *s, uint64_t off);
struct chunk_set *stream_set(struct stream *s);
/* Return false if the stream comes from a first pass and some bytes had no checksum
 * of the format. (Each window has a CRC since then.) */
bool stream_has_checksums(const struct stream *s);
/* Return how many bytes must be decoded to read one byte, in the worst case: the
 * bytes of a window, or, for points that are POINT_LATER, all bytes since the point
 * before them that is not. */
uint64_t stream_worst(const struct stream *s);

/* Set the memory in bytes that the idle decoders of all streams may take: at least
 * 40 MiB.  Memory above 40 MiB counts in the budget of caches. */
void stream_idle_decoders_limit(uint64_t bytes);
/* Set how many decoded bytes of first passes may be kept, for all streams together;
 * initially 0.  With `in_budget` they count in the budget of caches.  This applies to
 * scans that begin later. */
void stream_first_pass_limit(uint64_t bytes, bool in_budget);
/* Return how many such bytes are kept and were not read yet. */
uint64_t stream_first_pass_bytes(void);
/* Exclude the kept bytes from processes that are forked from now on, until
 * stream_first_pass_limit is called again: helper processes that read damaged files might
 * overwrite them.  To be called when the daemon has been forked. */
void stream_first_pass_no_fork(void);

#endif
