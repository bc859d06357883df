/* SPDX-License-Identifier: BSD-2-Clause */
/* Seek points while they are learnt: a row of windows, and their states. */
/*
 *	 0       1       2     | open |   4        5
 *	 closed: size and CRC    known    ahead: announced, bytes did not pass yet
 *
 * A closed window is joined to the one before it if both are small and neither needs a
 * state: a bgzip file has a member for each 64 KiB, and a point for each of a million
 * members would be too many.
 *
 * States are the cost: up to 32 KiB each for gzip.  The decoder asks before it makes
 * one (row_wants), and has to wait while the states exceed a share of the compressed
 * bytes read so far.  So windows grow where compression is good, and where nothing
 * compresses, and 100 GB need about 1.5 GB of states.  If a temporary file cannot be
 * had, every second state is given up each time that memory is full.
 */
#include "stream/row.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/number.h"

#define STATES_FREE (UINT64_C(4) << 20)
/* States may take 1/STATES_SHARE of the compressed bytes, in addition to
 * STATES_FREE. */
#define STATES_SHARE 64
#define STATES_MEMORY ((size_t)32 << 20)
/* Largest window where the size can be chosen, in bytes. */
#define WINDOW_MOST (UINT32_C(16) << 20)

void row_init(struct row *w)
{
	*w = (struct row){.window = STREAM_WINDOW,
			  .most = WINDOW_MOST,
			  .memory = STATES_MEMORY};
}

void row_free(struct row *w)
{
	if (w->deflater)
		libdeflate_free_compressor(w->deflater);
	blob_free(w->states);
	vec_free(&w->points);
}

static uint64_t row_states_size(const struct row *w)
{
	return w->states ? blob_size(w->states) : 0;
}

bool row_wants(const struct row *w, uint64_t out, uint64_t got)
{
	size_t n = w->points.n;
	uint64_t since = n ? out - w->points.at[n - 1].out : UINT64_MAX;

	if (since < w->window)
		return false;
	return since >= w->most || w->confined ||
	       row_states_size(w) <= STATES_FREE + got / STATES_SHARE;
}

void row_bad(struct row *w, uint64_t out)
{
	uint64_t end = UINT64_MAX;

	for (size_t i = w->points.n; i-- > 0 && end > out;) {
		w->points.at[i].flags |= POINT_BAD;
		end = w->points.at[i].out;
	}
}

/* ---- states -------------------------------------------------------------- */

/* Return whether window `b` may become a part of window `a`, which precedes it. */
static bool row_may_join(const struct stream_point *a,
			 const struct stream_point *b, uint64_t most)
{
	return (uint64_t)a->size + b->size <= most &&
	       (a->flags & POINT_BAD) == (b->flags & POINT_BAD);
}

static void row_join_windows(struct stream_point *a,
			     const struct stream_point *b)
{
	a->crc = (uint32_t)crc32_combine(a->crc, b->crc, b->size);
	a->size += b->size;
}

static int row_keep_state(struct stream_point *p, const struct blob *from,
			  struct blob *to, struct error *err)
{
	unsigned char *state = malloc(p->state_size);
	int r = state ? blob_read(from, p->state, state, p->state_size, err)
		      : error_no_memory(err, "the seek points of a stream");

	if (r == 0)
		r = blob_append(to, state, p->state_size, &p->state, err);
	free(state);
	return r;
}

/* Give up every second state.  The remaining states go to `less`. */
static int row_keep_half(struct row *w, struct blob *less, struct error *err)
{
	struct stream_point *at = w->points.at;
	size_t n = 0, open = w->open;
	bool odd = false;
	int r;

	for (size_t i = 0; i < w->points.n; i++) {
		struct stream_point p = at[i];

		if (i == open)
			w->open = n;
		odd = p.state_size && !odd;
		if (n && i < open && odd &&
		    row_may_join(&at[n - 1], &p, w->most)) {
			row_join_windows(&at[n - 1], &p);
			continue;
		}
		if (p.state_size) {
			r = row_keep_state(&p, w->states, less, err);
			if (r < 0)
				return r;
		}
		at[n++] = p;
	}
	w->points.n = n;
	return 0;
}

/* Join half of the closed windows that have a state to the windows before them, and
 * make future windows twice as large. */
static int row_thin_out(struct row *w, struct error *err)
{
	struct blob *less;
	int r = blob_new(&less, SIZE_MAX, NULL, err);

	if (r < 0)
		return r;
	w->confined = true;
	w->window = (uint32_t)min_u64(UINT64_C(2) * w->window, w->most);
	r = row_keep_half(w, less, err);
	if (r < 0) {
		blob_free(less);
		return r;
	}
	blob_free(w->states);
	w->states = less;
	return 0;
}

static int row_store_state(struct row *w, const void *stored, size_t n,
			   uint64_t *at, struct error *err)
{
	int r = 0;

	if (!w->states)
		r = blob_new(&w->states, w->memory, NULL, err);
	if (r == 0 && w->confined && row_states_size(w) + n > w->memory &&
	    w->window < w->most)
		r = row_thin_out(w, err);
	if (r < 0)
		return r;
	r = blob_append(w->states, stored, n, at, err);
	if (r == 0 || r == -ENOMEM || w->confined)
		return r;
	r = row_thin_out(w, err);
	return r < 0 ? r : blob_append(w->states, stored, n, at, err);
}

/* Store a state in the form that stream_state reads. */
static int row_pack_state(struct row *w, struct stream_point *p,
			  const unsigned char *state, size_t n,
			  struct error *err)
{
	unsigned char *stored = malloc(n + 4);
	size_t size = 0;
	int r;

	if (!w->deflater)
		w->deflater = libdeflate_alloc_compressor(1);
	if (!stored || !w->deflater) {
		free(stored);
		return error_no_memory(err, "the seek points of a stream");
	}
	store_le32(stored, (uint32_t)n);
	if (n > 1)
		size = libdeflate_deflate_compress(w->deflater, state, n,
						   stored + 4, n - 1);
	if (!size) {
		memcpy(stored + 4, state, n);
		size = n;
	}
	p->state_size = (uint32_t)size + 4;
	r = row_store_state(w, stored, size + 4, &p->state, err);
	free(stored);
	return r;
}

int row_add(struct row *w, const struct stream_point *p, const void *state,
	    size_t state_size, struct error *err)
{
	struct stream_point new = {
		.out = p->out, .in = p->in, .bits = p->bits, .flags = p->flags};
	size_t n = w->points.n;
	int r;

	if (p->out < (n ? w->points.at[n - 1].out : 0) || p->out < w->at ||
	    (!n && p->out) || state_size > STREAM_STATE_MAX)
		return error_set(err, -EINVAL, "a seek point out of order");
	if (state) {
		r = row_pack_state(w, &new, state, state_size, err);
		if (r < 0)
			return r;
		n = w->points.n; /* there may be fewer points now */
	}
	if (n && w->points.at[n - 1].out == new.out)
		w->points.at[n - 1] = new;
	else if (!vec_push(&w->points, new))
		return error_no_memory(err, "the seek points of a stream");
	return 0;
}

/* ---- windows ------------------------------------------------------------- */

static bool row_stands_alone(const struct stream_point *p)
{
	return !p->state_size && !(p->flags & POINT_LATER);
}

/* Close the open window at `end` and open the next one. */
static void row_close_window(struct row *w, uint64_t end)
{
	struct stream_point *p = &w->points.at[w->open];

	p->size = (uint32_t)(end - p->out);
	p->crc = w->crc;
	w->crc = 0;
	w->open++;
	if (w->open > 1 && row_stands_alone(p) && row_stands_alone(p - 1) &&
	    row_may_join(p - 1, p, w->window)) {
		row_join_windows(p - 1, p);
		w->points.n--;
		w->open--;
		memmove(p, p + 1, (w->points.n - w->open) * sizeof *p);
	}
}

int row_pass(struct row *w, const unsigned char *data, size_t n,
	     struct error *err)
{
	while (n > 0) {
		uint64_t end = UINT64_MAX, take;

		if (w->open >= w->points.n)
			return error_set(err, -EINVAL, "no first seek point");
		if (w->open + 1 < w->points.n)
			end = w->points.at[w->open + 1].out;
		take = min_u64(n, end - w->at);
		if (w->at + take - w->points.at[w->open].out >
		    STREAM_WINDOW_MAX)
			return error_set(err, -ENOTSUP,
					 "compressed so that decoding cannot "
					 "begin anywhere within %u MiB",
					 STREAM_WINDOW_MAX >> 20);
		w->crc = libdeflate_crc32(w->crc, data, (size_t)take);
		w->at += take;
		data += take;
		n -= (size_t)take;
		if (w->at == end)
			row_close_window(w, end);
	}
	return 0;
}

int row_end(struct row *w, struct stream_point **points, uint64_t *n,
	    struct blob **states, struct error *err)
{
	int r = 0;

	if (w->open < w->points.n && w->at > w->points.at[w->open].out)
		row_close_window(w, w->at);
	if (!w->states)
		r = blob_new(&w->states, 0, NULL, err);
	if (r < 0)
		return r;
	*points = w->points.at;
	*n = w->open;
	*states = w->states;
	w->points.at = NULL;
	w->states = NULL;
	return 0;
}
