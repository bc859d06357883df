/* SPDX-License-Identifier: BSD-2-Clause */
/* A compressed stream whose seek points are known: windows as a chunk set. */
/*
 * Points come from the first pass (stream/scan.c) or from an index, which is a file
 * that may hold anything.  Each number is compared with the others here, so decoders
 * may rely on it that windows follow each other, that their sizes are bounded, and that
 * states lie within the blob.  But a state or compressed bytes may still be anything:
 * decoders never write past a window, and its CRC tells whether they made the bytes of
 * the first pass.
 */
#include "stream/stream.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/bytes.h"
#include "base/counters.h"
#include "base/number.h"
#include "codec/codec.h"
#include "stream/first_pass.h"
#include "stream/stream_private.h"

#define POINT_FLAGS (POINT_BAD | POINT_START | POINT_LATER)

/* ---- help for formats ---------------------------------------------------- */

static _Thread_local struct libdeflate_decompressor *inflater;

static void stream_inflater_free(void)
{
	if (inflater)
		libdeflate_free_decompressor(inflater);
	inflater = NULL;
}

struct libdeflate_decompressor *stream_inflater(void)
{
	if (!inflater && codec_thread_at_exit(stream_inflater_free) == 0)
		inflater = libdeflate_alloc_decompressor();
	return inflater;
}

int stream_get(const struct stream *s, uint64_t in, void *to, size_t n,
	       struct error *err)
{
	int r = backing_read(&s->from, in, to, n, err);

	if (r == 0)
		counter_add(COUNT_BYTES_STORED, n);
	return r;
}

static int stream_bad_state(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "the decoder state of a seek point is damaged");
}

static int stream_inflate_state(const unsigned char *stored, size_t n, void *to,
				size_t size, struct error *err)
{
	struct libdeflate_decompressor *d = stream_inflater();

	if (!d)
		return error_no_memory(err, "the seek points of a stream");
	if (libdeflate_deflate_decompress(d, stored, n, to, size, NULL) !=
	    LIBDEFLATE_SUCCESS)
		return stream_bad_state(err);
	return 0;
}

/* A stored state is four bytes with its size, then its bytes, deflated if they are
 * fewer than the size. */
ssize_t stream_state(const struct stream *s, uint64_t point, void *to,
		     size_t room, struct error *err)
{
	const struct stream_point *p = &s->point[point];
	unsigned char *stored;
	size_t size, n;
	int r;

	if (p->state_size < 4 || p->state_size > STREAM_STATE_MAX + 4)
		return stream_bad_state(err);
	stored = malloc(p->state_size);
	if (!stored)
		return error_no_memory(err, "the seek points of a stream");
	r = blob_read(s->states, p->state, stored, p->state_size, err);
	n = p->state_size - 4;
	size = load_le32(stored);
	if (r == 0 && (size > room || n > size))
		r = stream_bad_state(err);
	if (r == 0 && n < size)
		r = stream_inflate_state(stored + 4, n, to, size, err);
	else if (r == 0)
		memcpy(to, stored + 4, size);
	free(stored);
	return r < 0 ? r : (ssize_t)size;
}

/* ---- the chunk set ------------------------------------------------------- */

static uint64_t stream_no_segment(const struct chunk_set *set, uint64_t index)
{
	(void)set;
	(void)index;
	return UINT64_MAX;
}

static int stream_locate(const struct chunk_set *set, uint64_t index,
			 const struct buf *segment, struct chunk *out,
			 struct error *err)
{
	const struct stream *s = (const struct stream *)set;

	(void)segment;
	if (index >= s->n)
		return error_set(err, -EIO, "there is no window %llu",
				 (unsigned long long)index);
	*out = (struct chunk){.state = CHUNK_FETCH,
			      .file = s->from.file,
			      .size = s->point[index].size};
	return 0;
}

static int stream_check_crc(const struct stream_point *p,
			    const unsigned char *data, struct error *err)
{
	uint32_t crc = libdeflate_crc32(0, data, p->size);

	if (crc == p->crc)
		return 0;
	return error_set(err, -EBADMSG,
			 "decodes to other bytes than when it was first read "
			 "(CRC-32 %08x instead of %08x): damaged, or a stale "
			 "index",
			 (unsigned)crc, (unsigned)p->crc);
}

static int stream_decode_window(struct stream *s, uint64_t index,
				_Atomic uint64_t *gauge, struct buf **out,
				struct error *err)
{
	uint32_t size = s->point[index].size;

	*out = buf_new(size, gauge);
	if (!*out)
		return error_set(err, -ENOMEM,
				 "out of memory for a window of %u bytes",
				 (unsigned)size);
	return s->format->window(s, index, (*out)->data, err);
}

static int stream_fetch(struct chunk_set *set, uint64_t index,
			_Atomic uint64_t *gauge, struct buf **out,
			struct error *err)
{
	struct stream *s = (struct stream *)set;
	const struct stream_point *p = &s->point[index];
	struct buf *b;
	bool kept;
	int r = 0;

	if (p->flags & POINT_BAD)
		return error_set(err, -EBADMSG,
				 "the checksum of the %s data does not match",
				 s->format->name);
	b = first_pass_take(s->first_pass, p, index, gauge);
	kept = b != NULL;
	if (!kept)
		r = stream_decode_window(s, index, gauge, &b, err);
	if (r == 0)
		r = stream_check_crc(p, b->data, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	if (!kept) {
		counter_add(COUNT_CHUNKS_DECODED, 1);
		counter_add(COUNT_BYTES_DECODED, p->size);
	}
	*out = b;
	return 0;
}

static bool stream_next_window(const struct chunk_set *set, uint64_t index,
			       uint64_t *out, unsigned *carry)
{
	const struct stream *s = (const struct stream *)set;

	*out = index + 1;
	*carry = 0;
	return *out < s->n;
}

/* The origin of a window: which decoded bytes it has, their CRC, and the compressed
 * bytes before. */
static bool stream_origin(const struct chunk_set *set, uint64_t index,
			  const struct chunk *c, char *text, size_t n)
{
	const struct stream *s = (const struct stream *)set;
	const struct stream_point *p = &s->point[index];
	int len = snprintf(text, n,
			   "%s: %u decoded at %llu, CRC-32 %08x, stored at "
			   "%llu (%u), of ",
			   s->format->name, (unsigned)p->size,
			   (unsigned long long)p->out, (unsigned)p->crc,
			   (unsigned long long)p->in, (unsigned)p->bits);

	(void)c;
	return len > 0 && (size_t)len < n && !(p->flags & POINT_BAD) &&
	       backing_origin(&s->from, text + len, n - (size_t)len);
}

static void stream_describe(const struct chunk_set *set, uint64_t index,
			    char *buf, size_t n)
{
	const struct stream *s = (const struct stream *)set;
	const struct stream_point *p;

	if (index >= s->n) {
		snprintf(buf, n, "%s", backing_name(&s->from));
		return;
	}
	p = &s->point[index];
	snprintf(buf, n, "%s: %s window %llu (bytes %llu to %llu, decoded)",
		 backing_name(&s->from), s->format->name,
		 (unsigned long long)index, (unsigned long long)p->out,
		 (unsigned long long)(p->out + p->size));
}

static const struct chunk_set_ops set_ops = {
	.index_page_of = stream_no_segment,
	.locate = stream_locate,
	.fetch = stream_fetch,
	.next = stream_next_window,
	.origin = stream_origin,
	.describe = stream_describe,
};

/* ---- making one ---------------------------------------------------------- */

int stream_new(struct stream **out, const struct stream_format *f,
	       const struct backing *from, struct stream_point *points,
	       uint64_t n, struct blob *states, struct error *err)
{
	struct stream *s = calloc(1, sizeof *s);

	*out = NULL;
	if (!s) {
		free(points);
		blob_free(states);
		return error_no_memory(err, "the seek points of a stream");
	}
	s->set.ops = &set_ops;
	s->set.id = chunk_set_new_id();
	s->format = f;
	s->from = *from;
	s->point = points;
	s->n = n;
	s->states = states;
	if (n)
		s->size = points[n - 1].out + points[n - 1].size;
	atomic_init(&s->set.unit, n ? s->size / n : STREAM_WINDOW);
	*out = s;
	return 0;
}

/* Return what is wrong with point `i`, or NULL. */
static const char *stream_point_fault(const struct stream_point *p, uint64_t i,
				      const struct backing *from,
				      uint64_t states)
{
	const struct stream_point *was = i ? p - 1 : NULL;

	if (p->flags & ~POINT_FLAGS || p->unused || p->bits > 7)
		return "it has unknown flags";
	if (!p->size || p->size > STREAM_WINDOW_MAX)
		return "its window has an impossible size";
	if (p->out != (was ? was->out + was->size : 0) ||
	    p->out > INT64_MAX - STREAM_WINDOW_MAX)
		return "its window begins at a wrong place";
	if (p->in > from->size || (p->bits && !p->in) ||
	    (was && p->in < was->in))
		return "its compressed bytes begin at a wrong place";
	if (p->state > states || p->state_size > states - p->state)
		return "its state is not among the stored states";
	if (p->flags & (POINT_START | POINT_LATER) && p->state_size)
		return "it has a state but cannot have one";
	if (p->flags & POINT_LATER && (!was || p->flags & POINT_START))
		return "it depends on an earlier point that is missing";
	return NULL;
}

static int stream_check_points(const struct backing *from,
			       const struct stream_point *points, uint64_t n,
			       uint64_t states, struct error *err)
{
	for (uint64_t i = 0; i < n; i++) {
		const char *fault =
			stream_point_fault(&points[i], i, from, states);

		if (fault)
			return error_set(
				err, -EBADMSG,
				"seek point %llu of %s is not valid: %s",
				(unsigned long long)i, backing_name(from),
				fault);
	}
	return 0;
}

int stream_of_points(struct stream **out, const struct stream_format *f,
		     const struct backing *from,
		     const struct stream_point *points, uint64_t n,
		     struct blob *states, struct error *err)
{
	struct stream_point *copy = NULL;
	int r;

	*out = NULL;
	r = stream_check_points(from, points, n, blob_size(states), err);
	if (r == 0) {
		copy = n < SIZE_MAX / sizeof *copy
			       ? malloc(n ? n * sizeof *copy : 1)
			       : NULL;
		if (!copy)
			r = error_no_memory(err, "the seek points of a stream");
	}
	if (r < 0) {
		blob_free(states);
		return r;
	}
	if (n)
		memcpy(copy, points, n * sizeof *copy);
	return stream_new(out, f, from, copy, n, states, err);
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	if (s->format->free_own)
		s->format->free_own(s);
	first_pass_free(s->first_pass);
	blob_free(s->states);
	free(s->point);
	free(s);
}

/* ---- asking -------------------------------------------------------------- */

uint64_t stream_size(const struct stream *s)
{
	return s->size;
}

const struct stream_point *stream_points(const struct stream *s, uint64_t *n)
{
	*n = s->n;
	return s->point;
}

const struct blob *stream_states(const struct stream *s)
{
	return s->states;
}

const struct stream_format *stream_format_of(const struct stream *s)
{
	return s->format;
}

const struct backing *stream_from(const struct stream *s)
{
	return &s->from;
}

struct chunk_set *stream_set(struct stream *s)
{
	return &s->set;
}

bool stream_has_checksums(const struct stream *s)
{
	return !s->unchecked;
}

uint64_t stream_window_at(const struct stream *s, uint64_t off)
{
	struct bisect b = bisect_in(0, s->n);

	while (bisect_next(&b))
		bisect_answer(&b, s->point[b.mid].out > off);
	return b.lo ? b.lo - 1 : 0;
}

uint64_t stream_worst(const struct stream *s)
{
	uint64_t worst = 0, run = 0;

	for (uint64_t i = 0; i < s->n; i++) {
		if (!(s->point[i].flags & POINT_LATER))
			run = 0;
		run += s->point[i].size;
		worst = max_u64(worst, run);
	}
	return worst;
}
