/* SPDX-License-Identifier: BSD-2-Clause */
/* What the formats of streams share with stream.c; nobody else includes it. */
#ifndef STREAM_STREAM_PRIVATE_H
#define STREAM_STREAM_PRIVATE_H

#include "stream/stream.h"

struct ahead_ops;
struct frame_kind;
struct first_pass;
/* A decoder on its first pass: sequential, making points. */
struct stream_decoder {
	const struct stream_format *format;
	struct stream_scan *scan;
};
/* How a format's decoder is made and driven. */
struct stream_decoder_ops {
	int (*open)(struct stream_decoder **out, const struct stream_format *f,
		    struct stream_scan *scan, struct error *err);
	/* Decoded bytes in order: 1 to n of them, 0 at the end of the stream,
	 * -EBADMSG or -EIO with a sentence.  Calls scan_point at each place where
	 * a window may begin (the first one at 0). */
	ssize_t (*read)(struct stream_decoder *d, void *to, size_t n,
			struct error *err);
	void (*close)(struct stream_decoder *d);
};
struct stream_format {
	const char *name;
	/* ".gz=", ".tgz=.tar": suffixes and what replaces them. */
	const char *const *suffixes; /* ends with NULL */
	/* 0 to 100 from the first bytes.  Formats of frames have `frames` instead. */
	int (*probe)(const unsigned char *head, size_t n);
	const struct frame_kind *frames;
	const struct stream_decoder_ops *decoder;
	/* Only where `decoder` is ahead_decoder. */
	const struct ahead_ops *ahead;
	/* Decode window `i` into `out`, which has room for all of its bytes; must
	 * make exactly these.  Any number of threads at once.  stream.c compares
	 * the CRC afterwards. */
	int (*window)(struct stream *s, uint64_t i, unsigned char *out,
		      struct error *err);
	/* Optional: what stream->own holds. */
	void (*free_own)(struct stream *s);
};
/* Rows end with NULL; optional libraries leave theirs out. */
extern const struct stream_format *const stream_table[];
extern const struct stream_format stream_gzip, stream_bzip2, stream_xz,
	stream_zstd, stream_lz4;

struct stream {
	struct chunk_set set; /* first member */
	const struct stream_format *format;
	struct backing from;
	struct stream_point *point;
	uint64_t n, size;
	struct blob *states;
	bool unchecked; /* the format has no checksums of some bytes */
	void *own;      /* of the format: parked decoders, for example */
	struct first_pass *first_pass; /* or NULL */
};

/* Bytes of a state, before it is deflated. */
#define STREAM_STATE_MAX (UINT32_C(1) << 20)

/* ---- for decoders -------------------------------------------------------- */

/* Sentences of read and scan_bad, and of window, do without the name of the file:
 * it is put in front of them. */

/* Up to n compressed bytes from where the scan is, which goes on behind them; 0 at
 * the end; -errno. */
ssize_t scan_get(struct stream_scan *s, void *to, size_t n, struct error *err);
/* Compressed bytes that scan_get has handed out. */
uint64_t scan_got(const struct stream_scan *s);
const struct backing *scan_from(const struct stream_scan *s);
unsigned scan_threads(const struct stream_scan *s);
/* How large windows are to be, about: STREAM_WINDOW, unless a test says otherwise. */
uint32_t scan_window(const struct stream_scan *s);
/* Would a window that ends before decoded byte `out` be large enough?  (The size
 * that is wanted grows where states would become too much.)  Ask before points
 * that need a state, or that are POINT_LATER; windows between others are joined
 * where they are small. */
bool scan_wants_point(const struct stream_scan *s, uint64_t out);
/* The size of windows that is wanted at present. */
uint32_t scan_window(const struct stream_scan *s);
/* A point here: p->out, in, bits and flags are set, and all bytes before p->out
 * were delivered or are about to be; `state` (may be NULL) is deflated and stored
 * by this.  One at the place of the last one replaces it. */
int scan_point(struct stream_scan *s, const struct stream_point *p,
	       const void *state, size_t state_size, struct error *err);
/* A checksum failed that covers decoded bytes from `out` on, up to the point that
 * is made next: their points become POINT_BAD.  Best said before the last of these
 * bytes are delivered: then no intact window has been joined to theirs.  The first
 * sentence is kept for stream_scan_finish; decoding may go on. */
void scan_bad(struct stream_scan *s, uint64_t out, const struct error *why);
/* What comes next has no checksum of the format.  On the thread that reads. */
void scan_unchecked(struct stream_scan *s);
/* For tests: other sizes of windows, and of states in memory, than the usual; before
 * the first byte is read. */
void scan_limit(struct stream_scan *s, uint32_t window, uint32_t most,
		size_t memory);
/* The state of a point, inflated: its bytes, `room` at most. */
ssize_t stream_state(const struct stream *s, uint64_t point, void *to,
		     size_t room, struct error *err);
/* This thread's decoder of libdeflate; NULL: out of memory. */
struct libdeflate_decompressor *stream_inflater(void);
/* What both ways to make a stream end in; takes over points and states. */
int stream_new(struct stream **out, const struct stream_format *f,
	       const struct backing *from, struct stream_point *points,
	       uint64_t n, struct blob *states, struct error *err);
/* Compressed bytes of a stream, from a backing.  Whole or an error. */
int stream_get(const struct stream *s, uint64_t in, void *to, size_t n,
	       struct error *err);

#endif
