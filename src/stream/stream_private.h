/* SPDX-License-Identifier: BSD-2-Clause */
/* What the formats of streams share with stream.c; included only in this folder and
 * its tests. */
#ifndef STREAM_STREAM_PRIVATE_H
#define STREAM_STREAM_PRIVATE_H

#include "stream/stream.h"

struct ahead_ops;
struct frame_kind;
struct first_pass;
/* The decoder of a first pass, which decodes sequentially and makes points. */
struct stream_decoder {
	const struct stream_format *format;
	struct stream_scan *scan;
};
/* How a format's decoder is made and driven. */
struct stream_decoder_ops {
	int (*open)(struct stream_decoder **out, const struct stream_format *f,
		    struct stream_scan *scan, struct error *err);
	/* Decode the next bytes.  Return their number, 1 to n, or 0 at the end of
	 * the stream, or -EBADMSG or -EIO with a sentence.  Calls scan_point at each
	 * place where a window may begin, at 0 first. */
	ssize_t (*read)(struct stream_decoder *d, void *to, size_t n,
			struct error *err);
	void (*close)(struct stream_decoder *d);
};
struct stream_format {
	const char *name;
	/* Suffixes and their replacements: ".gz=", ".tgz=.tar". */
	const char *const *suffixes; /* ends with NULL */
	/* Return from the first n bytes how likely the file has this format: 0 to
	 * 100.  Formats of frames have `frames` instead. */
	int (*probe)(const unsigned char *head, size_t n);
	const struct frame_kind *frames;
	const struct stream_decoder_ops *decoder;
	/* Only where `decoder` is ahead_decoder. */
	const struct ahead_ops *ahead;
	/* Decode window `i` into `out`, which has room for exactly its bytes; all of
	 * them must be made.  Return 0 or -errno.  Called by any number of threads
	 * at the same time. stream.c compares the CRC afterwards. */
	int (*window)(struct stream *s, uint64_t i, unsigned char *out,
		      struct error *err);
	/* Optional: free stream->own. */
	void (*free_own)(struct stream *s);
};
/* All formats, with NULL at the end.  Formats whose library is missing are left out. */
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
	bool unchecked; /* some bytes have no checksum of the format */
	void *own;      /* of the format: its idle decoders, for example */
	struct first_pass *first_pass; /* or NULL */
};

/* Largest state in bytes, before it is deflated. */
#define STREAM_STATE_MAX (UINT32_C(1) << 20)

/* ---- for decoders -------------------------------------------------------- */

/* The error sentences of read, scan_bad and window do not name the file: its name is
 * put in front of them. */

/* Read up to n of the next compressed bytes of a scan.  Return their number, 0 at
 * the end, or -errno. */
ssize_t scan_get(struct stream_scan *s, void *to, size_t n, struct error *err);
/* Return the number of compressed bytes that scan_get has returned. */
uint64_t scan_got(const struct stream_scan *s);
const struct backing *scan_from(const struct stream_scan *s);
unsigned scan_threads(const struct stream_scan *s);
/* Return the wanted size of windows in bytes.  It begins as STREAM_WINDOW, unless
 * scan_limit has changed it, and grows where states would take too much memory. */
uint32_t scan_window(const struct stream_scan *s);
/* Return whether a window that ends before decoded byte `out` would be large enough.
 * (The wanted size grows where states would take too much.) To be asked before
 * points that need a state or are POINT_LATER; other windows are joined if they are
 * small. */
bool scan_wants_point(const struct stream_scan *s, uint64_t out);
uint32_t scan_window(const struct stream_scan *s);
/* Make a point.  The caller has set p->out, in, bits and flags; all bytes before
 * p->out were delivered or are about to be.  `state` (may be NULL) is deflated and
 * stored.  A point at the place of the last one replaces it.  Return 0 or -errno. */
int scan_point(struct stream_scan *s, const struct stream_point *p,
	       const void *state, size_t state_size, struct error *err);
/* Report a failed checksum over the decoded bytes from `out` on up to the next point
 * that is made: their points become POINT_BAD.  This should be called before the
 * last of these bytes are delivered, so that no intact window has been joined to
 * theirs.  The first sentence is kept for stream_scan_finish; decoding may go on. */
void scan_bad(struct stream_scan *s, uint64_t out, const struct error *why);
/* Note that bytes of the stream have no checksum of the format.  On the reader's
 * thread only. */
void scan_unchecked(struct stream_scan *s);
/* For tests: set the wanted and the largest size of windows, and the size of states
 * in memory, in bytes.  To be called before the first byte is read. */
void scan_limit(struct stream_scan *s, uint32_t window, uint32_t most,
		size_t memory);
/* Read and inflate the state of a point.  `to` has `room` bytes.  Return its size in
 * bytes, -EBADMSG or another -errno. */
ssize_t stream_state(const struct stream *s, uint64_t point, void *to,
		     size_t room, struct error *err);
/* Return this thread's libdeflate decompressor, or NULL when memory is out. */
struct libdeflate_decompressor *stream_inflater(void);
/* Make a stream of points and states, which it owns, also on failure (points are
 * malloc'ed).  Return 0 or -ENOMEM. */
int stream_new(struct stream **out, const struct stream_format *f,
	       const struct backing *from, struct stream_point *points,
	       uint64_t n, struct blob *states, struct error *err);
/* Read exactly n compressed bytes of a stream at offset `in`, and count them.
 * Return 0 or -errno.  Blocks. */
int stream_get(const struct stream *s, uint64_t in, void *to, size_t n,
	       struct error *err);

#endif
