/* SPDX-License-Identifier: BSD-2-Clause */
/* The first pass over a compressed stream: a decoder as an input. */
/*
 * Reading the input drives the decoder, which makes bytes and says where a window may
 * begin; stream/row.c makes windows of that.  There are two kinds of failures.  Damage
 * of the data ends the stream or makes windows of it bad, and the part that could be
 * decoded is handed over.  Failures of the disk, of memory or of this program say
 * nothing about the data: then no stream is made.
 */
#include "stream/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "stream/first_pass.h"
#include "stream/row.h"
#include "stream/stream_private.h"

#define SKIP_BYTES ((size_t)256 << 10)

struct stream_scan {
	struct input in; /* first member */
	struct backing from;
	unsigned threads;
	struct stream_decoder *decoder;
	_Atomic uint64_t got;
	struct row row;
	struct first_pass *first_pass; /* or NULL */
	bool unchecked; /* some bytes have no checksum of the format */
	bool ended;
	bool fatal;           /* a failure that is not due to the data */
	struct error failure; /* code 0: none */
	struct error bad;     /* the first checksum that failed */
	unsigned char *waste;
	void (*so_far)(void *ctx, uint64_t consumed); /* or NULL */
	void *ctx;
	uint64_t told;
};

/* ---- for decoders -------------------------------------------------------- */

static int scan_fatal(struct stream_scan *s, int r)
{
	s->fatal = s->fatal || r < 0;
	return r;
}

ssize_t scan_get(struct stream_scan *s, void *to, size_t n, struct error *err)
{
	uint64_t got = atomic_load(&s->got);
	int r;

	n = (size_t)min_u64(n, s->from.size - got);
	if (!n)
		return 0;
	r = backing_read(&s->from, got, to, n, err);
	if (r < 0)
		return scan_fatal(s, r);
	atomic_store(&s->got, got + n);
	return (ssize_t)n;
}

uint64_t scan_got(const struct stream_scan *s)
{
	return atomic_load(&s->got);
}

const struct backing *scan_from(const struct stream_scan *s)
{
	return &s->from;
}

unsigned scan_threads(const struct stream_scan *s)
{
	return s->threads;
}

void scan_limit(struct stream_scan *s, uint32_t window, uint32_t most,
		size_t memory)
{
	s->row.window = window;
	s->row.most = most;
	s->row.memory = memory;
}

uint32_t scan_window(const struct stream_scan *s)
{
	return s->row.window;
}

bool scan_wants_point(const struct stream_scan *s, uint64_t out)
{
	return row_wants(&s->row, out, scan_got(s));
}

int scan_point(struct stream_scan *s, const struct stream_point *p,
	       const void *state, size_t state_size, struct error *err)
{
	return scan_fatal(s, row_add(&s->row, p, state, state_size, err));
}

void scan_bad(struct stream_scan *s, uint64_t out, const struct error *why)
{
	row_bad(&s->row, out);
	if (s->bad.code)
		return;
	s->bad = *why;
	error_prefix(&s->bad, "%s: ", backing_name(&s->from));
}

void scan_unchecked(struct stream_scan *s)
{
	s->unchecked = true;
}

/* ---- the input ----------------------------------------------------------- */

static int scan_stopped(const struct stream_scan *s, struct error *err)
{
	return s->failure.code
		       ? error_set(err, s->failure.code, "%s", s->failure.text)
		       : 0;
}

/* End the pass with a failure.  Decoders' sentences do not name the file, so its
 * name is put in front. */
static void scan_fail(struct stream_scan *s, int r, const struct error *e)
{
	s->failure = *e;
	s->failure.code = r;
	if (!s->fatal)
		error_prefix(&s->failure, "%s: ", backing_name(&s->from));
}

/* Report progress.  This is done here and not at the headers of a tar, because one
 * member may take hours. */
static void scan_tell_progress(struct stream_scan *s)
{
	uint64_t got = scan_got(s);

	if (!s->so_far || got == s->told)
		return;
	s->told = got;
	s->so_far(s->ctx, got);
}

static ssize_t scan_read(struct input *in, void *to, size_t n,
			 struct error *err)
{
	struct stream_scan *s = (struct stream_scan *)in;
	unsigned char *p = to;
	size_t have = 0;

	while (have < n && !s->ended && !s->failure.code) {
		struct error e = {0};
		ssize_t r = s->decoder->format->decoder->read(
			s->decoder, p + have, n - have, &e);

		if (r > 0) {
			int d = scan_fatal(
				s, row_pass(&s->row, p + have, (size_t)r, &e));

			if (d == 0) {
				first_pass_add(s->first_pass, p + have,
					       (size_t)r);
				have += (size_t)r;
			} else {
				r = d;
			}
		}
		if (r < 0)
			scan_fail(s, (int)r, &e);
		s->ended = r == 0;
		scan_tell_progress(s);
	}
	in->at += have;
	return have || !n ? (ssize_t)have : scan_stopped(s, err);
}

static int64_t scan_skip(struct input *in, uint64_t n, struct error *err)
{
	struct stream_scan *s = (struct stream_scan *)in;
	uint64_t done = 0;

	if (!s->waste)
		s->waste = malloc(SKIP_BYTES);
	if (!s->waste)
		return error_no_memory(err, "decoding a stream");
	while (done < n) {
		ssize_t r =
			scan_read(in, s->waste,
				  (size_t)min_u64(SKIP_BYTES, n - done), err);

		if (r < 0 && !done)
			return r;
		if (r <= 0)
			break;
		done += (uint64_t)r;
	}
	return (int64_t)done;
}

/* The input is a part of the scan, which its users borrow: freeing the input does
 * nothing. */
static void scan_input_free(struct input *in)
{
	(void)in;
}

static const struct input_ops input_ops = {scan_read, scan_skip,
					   scan_input_free};

/* ---- beginning and end --------------------------------------------------- */

int stream_scan_new(struct stream_scan **out, const struct stream_format *f,
		    const struct backing *from, unsigned threads,
		    struct error *err)
{
	struct stream_scan *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "decoding a stream");
	s->in.ops = &input_ops;
	s->from = *from;
	s->threads = threads ? threads : 1;
	row_init(&s->row);
	r = f->decoder->open(&s->decoder, f, s, err);
	if (r < 0) {
		s->decoder = NULL;
		stream_scan_free(s);
		return r;
	}
	*out = s;
	return 0;
}

struct input *stream_scan_input(struct stream_scan *s)
{
	return &s->in;
}

void stream_scan_tell(struct stream_scan *s,
		      void (*so_far)(void *ctx, uint64_t consumed), void *ctx)
{
	s->so_far = so_far;
	s->ctx = ctx;
}

void stream_scan_keep(struct stream_scan *s)
{
	if (!s->first_pass)
		s->first_pass = first_pass_new();
}

void stream_scan_free(struct stream_scan *s)
{
	if (!s)
		return;
	if (s->decoder)
		s->decoder->format->decoder->close(s->decoder);
	row_free(&s->row);
	first_pass_free(s->first_pass);
	free(s->waste);
	free(s);
}

/* Return whether the failure is due to the data, so that the decoded part can be
 * shown. */
static bool scan_is_damage(const struct stream_scan *s)
{
	return !s->fatal &&
	       (s->failure.code == -EBADMSG || s->failure.code == -EIO);
}

static int scan_hand_over(struct stream_scan *s, struct stream **out,
			  struct error *err)
{
	struct stream_point *points;
	struct blob *states;
	uint64_t n;
	int r = row_end(&s->row, &points, &n, &states, err);

	if (r < 0)
		return r;
	first_pass_end(s->first_pass, points, n);
	r = stream_new(out, s->decoder->format, &s->from, points, n, states,
		       err);
	if (r == 0) {
		(*out)->first_pass = s->first_pass;
		(*out)->unchecked = s->unchecked;
		s->first_pass = NULL;
	}
	return r;
}

int stream_scan_finish(struct stream_scan *s, struct stream **out,
		       struct error *damage)
{
	int64_t n;
	int r;

	*out = NULL;
	do
		n = scan_skip(&s->in, SKIP_BYTES, damage);
	while (n > 0);
	if (n < 0 && !scan_is_damage(s)) {
		stream_scan_free(s);
		return (int)n;
	}
	r = scan_hand_over(s, out, damage);
	if (r == 0 && (s->bad.code || n < 0)) {
		*damage = s->bad.code ? s->bad : s->failure;
		r = -EBADMSG;
	}
	stream_scan_free(s);
	return r;
}
