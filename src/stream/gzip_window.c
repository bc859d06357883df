/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip: decodes one window, from the state of the decoder at its point. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/number.h"
#include "stream/gzip.h"

struct window {
	struct gzip_feed feed;
	struct inflate_out o;
	unsigned char state[GZIP_STATE_HEAD + INFLATE_HISTORY];
};

static int gzip_window_stale(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "no gzip data where there were some when it was first "
			 "read: damaged, or a stale index");
}

/* Put the decoder into the block whose header is at bit `at`: read its codes again. */
static int gzip_enter_block(struct window *w, const struct stream_point *p,
			    uint64_t at, struct error *err)
{
	const struct stream *s = w->feed.stream;
	struct inflate *x = &w->feed.x;
	unsigned char head[INFLATE_HEADER_MAX];
	uint64_t byte = at / 8, data;
	size_t n;
	int r;

	if (byte >= p->in)
		return gzip_window_stale(err);
	n = (size_t)min_u64(sizeof head, s->from.size - byte);
	r = stream_get(s, byte, head, n, err);
	if (r < 0)
		return r;
	x->in = head;
	x->end = head + n;
	x->end_at = byte + n;
	x->more = false;
	if (!inflate_skip(x, at % 8) || !inflate_header(x))
		return gzip_window_stale(err);
	data = inflate_bit(x) / 8;
	if (x->block == INFLATE_STORED) {
		if (p->bits || p->in < data || p->in - data > x->stored)
			return gzip_window_stale(err);
		x->stored -= (uint32_t)(p->in - data);
	}
	x->bits = 0;
	x->n_bits = 0;
	return 0;
}

static int gzip_enter_state(struct window *w, uint64_t i, struct error *err)
{
	const struct stream_point *p = &w->feed.stream->point[i];
	ssize_t n =
		stream_state(w->feed.stream, i, w->state, sizeof w->state, err);
	uint64_t header;
	int r = 0;

	if (n < 0)
		return (int)n;
	if (n < GZIP_STATE_HEAD)
		return gzip_window_stale(err);
	header = load_le64(w->state);
	w->o.before = w->state + GZIP_STATE_HEAD;
	w->o.n_before = (size_t)n - GZIP_STATE_HEAD;
	inflate_reset(&w->feed.x);
	if (header != GZIP_NO_HEADER)
		r = gzip_enter_block(w, p, header, err);
	return r;
}

/* Put the decoder where the window's bytes begin.  Return 0 or -errno. */
static int gzip_enter_window(struct window *w, uint64_t i, struct error *err)
{
	const struct stream_point *p = &w->feed.stream->point[i];
	uint64_t at;
	int r;

	if (p->flags & POINT_START) {
		gzip_feed_begin(&w->feed, p->in);
		r = gzip_header(&w->feed, true, &at, err);
		inflate_reset(&w->feed.x);
		return r < 0 ? r : 0;
	}
	r = gzip_enter_state(w, i, err);
	if (r < 0)
		return r;
	gzip_feed_begin(&w->feed, p->in - (p->bits ? 1 : 0));
	r = gzip_feed_more(&w->feed, err);
	if (r == 0 && p->bits && !inflate_skip(&w->feed.x, 8u - p->bits))
		r = gzip_window_stale(err);
	return r;
}

/* Go from the end of a member's data to the beginning of the next member's. */
static int gzip_pass_to_member(struct window *w, struct error *err)
{
	uint32_t crc, size;
	uint64_t at;
	int r = gzip_trailer(&w->feed, &crc, &size, err);

	if (r == 0) {
		r = gzip_header(&w->feed, false, &at, err);
		if (r == 0)
			return gzip_window_stale(err);
	}
	inflate_reset(&w->feed.x);
	w->o.start = w->o.next;
	w->o.n_before = 0;
	return r < 0 ? r : 0;
}

static int gzip_decode_window(struct window *w, uint64_t i, struct error *err)
{
	int r = gzip_enter_window(w, i, err);

	while (r == 0 && w->o.next < w->o.end) {
		enum inflate_end why = inflate_run(&w->feed.x, &w->o);

		if (w->o.next == w->o.end)
			break;
		if (why == INFLATE_INPUT)
			r = gzip_feed_more(&w->feed, err);
		else if (why == INFLATE_DONE)
			r = gzip_pass_to_member(w, err);
		else
			r = gzip_window_stale(err);
	}
	return r;
}

/* Compressed bytes are read up to the next point and a little further, because the
 * decoder is fast only while it has some to spare. */
int gzip_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err)
{
	const struct stream_point *p = &s->point[i];
	uint64_t limit = s->from.size, begin = p->in - (p->bits ? 1 : 0);
	struct window *w = malloc(sizeof *w);
	struct buf *buf;
	int r;

	if (i + 1 < s->n)
		limit = min_u64(limit, p[1].in + 64);
	buf = buf_new((size_t)min_u64(limit - begin + 1024, GZIP_FEED), NULL);
	if (w && buf) {
		memset(w, 0, offsetof(struct window, state));
		w->feed.stream = s;
		w->feed.limit = limit;
		w->feed.quiet = true;
		w->feed.buf = buf->data;
		w->feed.size = buf->size;
		w->o.start = w->o.next = out;
		w->o.end = out + p->size;
		r = gzip_decode_window(w, i, err);
	} else {
		r = error_no_memory(err, "decoding gzip data");
	}
	buf_unref(buf);
	free(w);
	return r;
}
