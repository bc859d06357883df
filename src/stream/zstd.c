/* SPDX-License-Identifier: BSD-2-Clause */
/* The first pass over Zstandard files: zstd, pzstd, the seekable format. */
/*
 * A frame needs nothing that precedes it.  Small frames are put together until they are
 * worth a job, larger ones are jobs of their own, on all threads; the headers of its
 * blocks tell how large a frame is, without decoding.  A frame that is too large for a
 * job (usually one frame of a whole tar) is decoded in pieces of whole blocks, one
 * after the other, by one cursor.  Windows that begin within such a frame are
 * POINT_LATER: see idle_decoders.c.
 *
 * Skippable frames are passed, the seek table of the seekable format among them: it has
 * no information that the frames do not have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/number.h"
#include "stream/ahead.h"
#include "stream/idle_decoders.h"
#include "stream/zstd_frame.h"

/* Frames are jobs if they decode to no more than this many windows, with threads and
 * without, ... */
#define WHOLE_THREADS 32
#define WHOLE_ALONE 8
/* ... and become one window if to no more than this many windows. */
#define WINDOW_WHOLE 8
/* Decoded bytes of a piece of a larger frame, in windows, about. */
#define PIECE 4

struct part {
	size_t off, len;
	uint64_t at; /* offset in the file */
	bool blocks; /* windows may begin within the part */
};
struct unit {
	struct ahead_unit base;
	vec(struct part)
		parts; /* frames; a piece of a large frame is a part, too */
	size_t room;   /* decoded bytes of the parts, at most */
	uint64_t file_size;
	/* The cursor of a large frame; NULL: the parts are whole frames. */
	struct zstd_cursor *large;
	bool first, last; /* the unit begins, or ends, a large frame */
};
struct decoder {
	struct ahead_decoder base;
	uint64_t window, whole; /* bytes */
	bool large;             /* within a large frame, which is `frame` */
	bool begun;             /* a piece of it was gathered */
	bool flying;            /* a piece of it was not taken yet */
	struct zstd_frame
		frame; /* the large frame that is being decoded, else the next frame */
	uint64_t frame_at; /* decoded bytes before the large frame */
	struct zstd_cursor cursor;
};

/* ---- gathering ----------------------------------------------------------- */

static void zstd_unit_clear(struct ahead_unit *base)
{
	struct unit *u = (struct unit *)base;

	vec_free(&u->parts);
}

static struct unit *zstd_unit_new(const struct decoder *d)
{
	struct unit *u = calloc(1, sizeof *u);

	if (u)
		u->file_size = scan_from(d->base.stream.scan)->size;
	return u;
}

/* Measure the next frame: its stored bytes, and its decoded bytes at most.  Return
 * false if it is too large or damaged or an error occurs; it is then decoded piece
 * by piece, which reports the error. */
static bool zstd_measure_frame(struct decoder *d, size_t *stored,
			       uint64_t *decoded)
{
	const struct zstd_frame *frame = &d->frame;
	size_t n = frame->header;
	uint64_t sum = 0;
	struct zstd_block b = {.last = false};

	if (frame->content != UINT64_MAX && frame->content > d->whole)
		return false;
	while (!b.last) {
		if (slide_need(&d->base.feed, n + 3, NULL) < (ssize_t)(n + 3) ||
		    zstd_parse_block(frame, d->base.feed.data + n, &b, NULL) <
			    0)
			return false;
		n += 3 + b.stored;
		sum += b.decoded;
		if (sum > d->whole + ZSTD_BLOCK_MOST || n > d->whole)
			return false;
	}
	n += frame->checksum ? 4 : 0;
	if (slide_need(&d->base.feed, n, NULL) < (ssize_t)n)
		return false;
	*stored = n;
	*decoded = min_u64(sum, frame->content);
	return true;
}

/* Move n more bytes to the unit.  Return 0, -EIO if there are fewer, or -errno. */
static int zstd_gather_bytes(struct decoder *d, struct unit *u, size_t n,
			     struct error *err)
{
	int r = frame_need(&zstd_frames, &d->base.feed, n, err);

	if (r < 0)
		return r;
	return ahead_gather(&u->base, &d->base.feed, n)
		       ? 0
		       : error_no_memory(err, "decoding zstd data");
}

/* Gather a block of a large frame, with the frame's header before the first block. */
static int zstd_gather_block(struct decoder *d, struct unit *u,
			     struct error *err)
{
	size_t skip = d->begun ? 0 : d->frame.header;
	struct zstd_block b = {0};
	int r = frame_need(&zstd_frames, &d->base.feed, skip + 3, err);

	if (r == 0)
		r = zstd_parse_block(&d->frame, d->base.feed.data + skip, &b,
				     err);
	if (r == 0)
		r = zstd_gather_bytes(d, u, skip + 3 + b.stored, err);
	if (r < 0)
		return r;
	d->begun = true;
	u->room += b.decoded;
	if (b.last && d->frame.checksum)
		r = zstd_gather_bytes(d, u, 4, err);
	u->last = b.last;
	return r;
}

static int zstd_gather_large(struct decoder *d, struct unit *u,
			     struct error *err)
{
	struct part part = {.at = d->base.feed.at, .blocks = true};
	struct error why = {0};
	int r = 0;

	u->large = &d->cursor;
	u->first = !d->begun;
	while (r == 0 && !u->last &&
	       (!u->room || u->room + d->frame.block <= PIECE * d->window))
		r = zstd_gather_block(d, u, &why);
	/* The damage is reported after the gathered bytes. */
	if (r == -EIO || r == -EBADMSG) {
		u->base.err = why;
		u->last = true;
	} else if (r < 0) {
		*err = why;
		return r;
	}
	part.len = u->base.in_size;
	if (part.len && !vec_push(&u->parts, part))
		return error_no_memory(err, "decoding zstd data");
	d->flying = true;
	return 0;
}

/* Gather small frames.  Return 0, 1 if the next frame is large, or -errno. */
static int zstd_gather_small(struct decoder *d, struct unit *u,
			     struct error *err)
{
	int r = 0;

	while (u->room < d->window) {
		struct part part;
		struct error why;
		uint64_t decoded;

		r = zstd_next_frame(&d->base.feed, &d->frame, &why);
		if (r <= 0) {
			/* An error is met again at the next call. */
			if (r < 0 && !u->parts.n)
				*err = why;
			return u->parts.n ? 0 : r;
		}
		if (!d->frame.checksum)
			scan_unchecked(d->base.stream.scan);
		if (!zstd_measure_frame(d, &part.len, &decoded))
			return 1;
		if (u->parts.n && u->room + decoded > 2 * d->window)
			return 0;
		part.off = u->base.in_size;
		part.at = d->base.feed.at;
		part.blocks = decoded > WINDOW_WHOLE * d->window;
		if (!ahead_gather(&u->base, &d->base.feed, part.len) ||
		    !vec_push(&u->parts, part))
			return error_no_memory(err, "decoding zstd data");
		u->room += decoded;
	}
	return 0;
}

static int zstd_gather_unit(void *own, struct ahead_unit **out,
			    struct error *err)
{
	struct decoder *d = own;
	const struct stream_scan *scan = d->base.stream.scan;
	struct unit *u;
	int r = 0;

	if (d->flying)
		return AHEAD_WAIT;
	d->window = scan_window(scan);
	d->whole = d->window *
		   (scan_threads(scan) > 1 ? WHOLE_THREADS : WHOLE_ALONE);
	u = zstd_unit_new(d);
	if (!u)
		return error_no_memory(err, "decoding zstd data");
	if (!d->large) {
		r = zstd_gather_small(d, u, err);
		if (r == 1 && !u->parts.n) {
			d->large = true;
			d->begun = false;
		}
	}
	if (r >= 0 && d->large)
		r = zstd_gather_large(d, u, err);
	if (r < 0 || (!u->parts.n && !u->large)) {
		ahead_discard(&d->base, &u->base);
		return r < 0 ? r : AHEAD_END;
	}
	u->base.cost = u->base.in_size + u->room;
	*out = &u->base;
	return AHEAD_UNIT;
}

/* ---- decoding ------------------------------------------------------------ */

static bool zstd_mark_here(struct unit *u, const struct zstd_cursor *c)
{
	struct ahead_mark mark = {.out = u->base.out_size, .in = c->feed.at};

	if (c->state == ZSTD_BETWEEN) {
		mark.flags = POINT_START;
		mark.must = c->blocks;
	} else if (c->state == ZSTD_BLOCKS)
		mark.flags = POINT_LATER;
	else
		return true;
	return ahead_add_mark(&u->base, mark);
}

/* Note that the checksum of a frame failed.  The frame has marks in the unit, or it
 * began before the unit, or it has no bytes. */
static void zstd_mark_bad(struct unit *u, const struct error *why)
{
	struct ahead_unit *b = &u->base;
	size_t i = b->marks.n;

	b->why = *why;
	b->why.code = -EBADMSG;
	if (u->large || b->marks.at[i - 1].out == b->out_size) {
		b->bad = true;
		b->bad_until = b->out_size;
		return;
	}
	while (i-- > 0) {
		b->marks.at[i].bad = true;
		if (b->marks.at[i].flags & POINT_START)
			break;
	}
}

static int zstd_run_part(struct unit *u, struct zstd_cursor *c,
			 const struct part *part, struct error *err)
{
	int r = 1;

	slide_of_memory(&c->feed, u->base.in + part->off, part->len, part->at);
	c->blocks = part->blocks;
	c->file_size = u->file_size;
	/* Bytes that are left in the decoder are always flushed: there is room for
	 * them. */
	while (r > 0 && (c->feed.n || c->state == ZSTD_FLUSH)) {
		size_t got;

		if (!zstd_mark_here(u, c))
			return error_no_memory(err, "decoding zstd data");
		r = zstd_cursor_step(c, u->base.out + u->base.out_size,
				     u->room + 1 - u->base.out_size, &got, err);
		u->base.out_size += got;
		if (r == -EILSEQ) {
			zstd_mark_bad(u, err);
			u->base.displaced |= c->frame.content == UINT64_MAX;
			r = 1;
		}
	}
	return r < 0 ? r : 0;
}

static int zstd_run_unit(struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;
	struct zstd_cursor own = {0}, *c = u->large ? u->large : &own;
	int r = 0;

	base->out = malloc(u->room + 1);
	if (!base->out)
		r = error_no_memory(err, "decoding zstd data");
	for (size_t i = 0; i < u->parts.n && r == 0; i++)
		r = zstd_run_part(u, c, &u->parts.at[i], err);
	zstd_cursor_free(&own);
	return r;
}

static int zstd_take_unit(void *own, struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;
	struct decoder *d = own;

	(void)err;
	base->bad_from = base->at + base->bad_until;
	if (!u->large) {
		/* If the unit ends with an error, all frames before were decoded. */
		for (size_t i = 0; i < base->marks.n; i++)
			if (base->marks.at[i].flags & POINT_START)
				base->verified =
					base->at + base->marks.at[i].out;
		return 0;
	}
	if (u->first)
		d->frame_at = base->at;
	base->verified = base->bad_from = d->frame_at;
	d->flying = false;
	if (u->last) {
		d->large = false;
		zstd_cursor_free(&d->cursor);
		d->cursor = (struct zstd_cursor){0};
	}
	return 0;
}

/* ---- the format ---------------------------------------------------------- */

static void zstd_close(void *own)
{
	zstd_cursor_free(&((struct decoder *)own)->cursor);
}

static const struct ahead_ops ahead_ops = {
	.size = sizeof(struct decoder),
	.close = zstd_close,
	.next = zstd_gather_unit,
	.run = zstd_run_unit,
	.taken = zstd_take_unit,
	.clear = zstd_unit_clear,
};

static const char *const suffixes[] = {
	".tar.zst=.tar", ".tzst=.tar", ".tzs=.tar", ".zst=", ".zstd=", NULL};

const struct stream_format stream_zstd = {
	.name = "zstd",
	.suffixes = suffixes,
	.frames = &zstd_frames,
	.decoder = &ahead_decoder,
	.ahead = &ahead_ops,
	.window = zstd_window,
	.free_own = idle_decoders_free,
};
