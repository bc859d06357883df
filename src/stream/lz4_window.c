/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of LZ4 streams, which begin where a block begins. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/lz4_frame.h"

size_t lz4_state_make(const struct lz4_frame *frame, const void *history,
		      size_t n, unsigned char *to)
{
	unsigned log = 0;

	while ((size_t)1 << log < frame->block)
		log++;
	to[0] = frame->flags;
	to[1] = (unsigned char)log;
	if (n)
		memcpy(to + LZ4_STATE_HEAD, history, n);
	return LZ4_STATE_HEAD + n;
}

/* Read the state of point `i`: the frame that it is within, and the history, for
 * which `to` has LZ4_STATE_MOST bytes.  Return the bytes of history, or -errno. */
static ssize_t lz4_state_read(const struct stream *s, uint64_t i,
			      struct lz4_frame *frame, unsigned char *to,
			      struct error *err)
{
	ssize_t n = stream_state(s, i, to, LZ4_STATE_MOST, err);

	if (n < 0)
		return n;
	if (n < LZ4_STATE_HEAD || to[0] & ~LZ4_FLAGS || to[1] < 16 ||
	    to[1] > 23 || (n > LZ4_STATE_HEAD && !(to[0] & LZ4_LINKED)))
		return error_set(err, -EBADMSG,
				 "lz4: the state of a seek point is not valid");
	frame->flags = to[0];
	frame->block = (size_t)1 << to[1];
	frame->at = s->point[i].in;
	frame->content = UINT64_MAX;
	memmove(to, to + LZ4_STATE_HEAD, (size_t)n - LZ4_STATE_HEAD);
	return n - LZ4_STATE_HEAD;
}

/* Go to the next frame, from the end of a frame if `within`.  Return 0 or -errno. */
static int lz4_enter_frame(struct slide *f, struct lz4_frame *frame,
			   bool within, struct error *err)
{
	uint32_t sum;
	int r = 0;

	if (within && frame->flags & LZ4_CONTENT_SUM)
		r = lz4_content_sum(f, &sum, err);
	if (r == 0)
		r = lz4_next_frame(f, frame, err);
	return r == 0 ? error_set(err, -EBADMSG,
				  "lz4: the data ends within a window")
		      : (r < 0 ? r : 0);
}

/* Decode n bytes to `out`; `before` bytes of the frame precede it in memory. */
static int lz4_decode_bytes(struct slide *f, struct lz4_frame *frame,
			    bool within, unsigned char *out, size_t n,
			    size_t before, struct error *err)
{
	size_t done = 0;
	int r = within ? 0 : lz4_enter_frame(f, frame, false, err);

	while (r == 0 && done < n) {
		struct lz4_block b;
		size_t stored;
		ssize_t got;

		r = lz4_next_block(f, frame, &b, &stored, err);
		if (r == 0) {
			r = lz4_enter_frame(f, frame, true, err);
			before = 0;
			continue;
		}
		if (r < 0)
			break;
		got = lz4_decode_block(frame, f->data, &b, out + done, n - done,
				       frame->flags & LZ4_LINKED ? before : 0,
				       err);
		if (got < 0)
			return (int)got;
		slide_drop(f, stored);
		done += (size_t)got;
		before += (size_t)got;
		r = 0;
	}
	return r;
}

static int lz4_decode_window(struct stream *s, uint64_t i, struct slide *f,
			     unsigned char *out, struct error *err)
{
	size_t size = s->point[i].size;
	struct lz4_frame frame = {0};
	unsigned char *own;
	ssize_t n;
	int r = slide_need_window(f, i, size, err);

	if (r < 0)
		return r;
	if (!s->point[i].state_size)
		return lz4_decode_bytes(f, &frame, false, out, size, 0, err);
	/* The history and the decoded bytes have to be contiguous. */
	own = malloc(LZ4_STATE_MOST + size);
	if (!own)
		return error_no_memory(err, "decoding lz4 data");
	n = lz4_state_read(s, i, &frame, own, err);
	if (n > 0) {
		r = lz4_decode_bytes(f, &frame, true, own + n, size, (size_t)n,
				     err);
		if (r == 0)
			memcpy(out, own + n, size);
	} else {
		r = n < 0 ? (int)n
			  : lz4_decode_bytes(f, &frame, true, out, size, 0,
					     err);
	}
	free(own);
	return r;
}

int lz4_window(struct stream *s, uint64_t i, unsigned char *out,
	       struct error *err)
{
	struct slide f;
	int r;

	slide_of_stream(&f, s, s->point[i].in);
	r = lz4_decode_window(s, i, &f, out, err);
	slide_free(&f);
	return r;
}
