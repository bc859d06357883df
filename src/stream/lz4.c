/* SPDX-License-Identifier: BSD-2-Clause */
/* The first pass over LZ4 files: frames, and frames of the legacy format. */
/*
 * Blocks are gathered until they make a unit that is worth a job.  Independent blocks
 * (the default of lz4(1)) and whole frames are decoded on all threads.  Where linked
 * blocks (the default of liblz4) go on from one unit to the next, the next unit waits
 * for the last 64 KiB of the one before.
 *
 * A point is where a block begins.  Its state is flags and block size of the frame, and
 * the 64 KiB before it if blocks are linked; at the beginning of a frame it needs no
 * state.
 *
 * Checksums of blocks are verified with each block.  The checksum of a whole frame is
 * computed in order, when units are taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/number.h"
#include "stream/ahead.h"
#include "stream/lz4_frame.h"

/* Blocks are gathered until they make this many windows. */
#define JOB 2

struct piece {
	size_t off; /* offset of the block's header in unit.in */
	struct lz4_block block;
	uint64_t at; /* offset of the block's header in the file */
	uint32_t frame;
};
/* A frame, or the part of it that is in a unit. */
struct part {
	struct lz4_frame frame;
	bool begins, ends;
	uint32_t sum;
	size_t from, to; /* range of the decoded bytes */
};
struct unit {
	struct ahead_unit base;
	vec(struct piece) pieces;
	vec(struct part) parts;
	size_t room;
	unsigned char *history; /* base.before bytes of history */
	bool open;              /* a linked frame goes on after the unit */
};
struct decoder {
	struct ahead_decoder base;
	/* Gathering. */
	bool within; /* within a frame, which is `frame` */
	struct lz4_frame frame;
	bool flying; /* the unit that makes its history was not taken yet */
	unsigned char history[LZ4_HISTORY];
	size_t history_size;
	/* Taking. */
	XXH32_state_t *sum;
	/* Decoded bytes of the stream up to which frames are confirmed. */
	uint64_t verified;
	/* Decoded bytes before the present frame, and of this frame so far. */
	uint64_t frame_at, content;
};

/* ---- gathering ----------------------------------------------------------- */

static void lz4_unit_clear(struct ahead_unit *base)
{
	struct unit *u = (struct unit *)base;

	vec_free(&u->pieces);
	vec_free(&u->parts);
	free(u->history);
}

/* Make a unit.  If it begins within a linked frame it gets the history before it.
 * Return NULL when memory is out. */
static struct unit *lz4_unit_new(struct decoder *d)
{
	struct unit *u = calloc(1, sizeof *u);
	struct part part = {.frame = d->frame};

	if (!u)
		return NULL;
	if (d->within) {
		if (!vec_push(&u->parts, part))
			goto out;
		if (d->frame.flags & LZ4_LINKED) {
			u->base.before = d->history_size;
			u->history = malloc(d->history_size + 1);
			if (!u->history)
				goto out;
			memcpy(u->history, d->history, d->history_size);
		}
	}
	return u;
out:
	ahead_discard(&d->base, &u->base);
	return NULL;
}

static int lz4_unit_add(struct unit *u, struct slide *f,
			const struct lz4_frame *frame, struct lz4_block block,
			size_t n, struct error *err)
{
	struct piece piece = {.off = u->base.in_size,
			      .block = block,
			      .at = f->at,
			      .frame = (uint32_t)(u->parts.n - 1)};

	if (!ahead_gather(&u->base, f, n) || !vec_push(&u->pieces, piece))
		return error_no_memory(err, "decoding lz4 data");
	u->room += lz4_block_most(frame, &block);
	return 0;
}

/* End the frame: read its checksum.  Return 0 or -errno. */
static int lz4_end_frame(struct decoder *d, struct unit *u, struct error *err)
{
	struct part *part = &u->parts.at[u->parts.n - 1];
	int r = 0;

	if (d->frame.flags & LZ4_CONTENT_SUM)
		r = lz4_content_sum(&d->base.feed, &part->sum, err);
	part->ends = r == 0;
	d->within = false;
	return r;
}

/* Gather the header of a frame, or a block.  Return 1 to go on, 0 at the end of the
 * stream, or -errno. */
static int lz4_gather_one(struct decoder *d, struct unit *u, struct error *err)
{
	struct part part = {.begins = true};
	struct lz4_block block;
	size_t n;
	int r;

	if (!d->within) {
		r = lz4_next_frame(&d->base.feed, &d->frame, err);
		if (r <= 0)
			return r;
		d->within = true;
		if (!(d->frame.flags & (LZ4_BLOCK_SUMS | LZ4_CONTENT_SUM)))
			scan_unchecked(d->base.stream.scan);
		part.frame = d->frame;
		return vec_push(&u->parts, part)
			       ? 1
			       : error_no_memory(err, "decoding lz4 data");
	}
	r = lz4_next_block(&d->base.feed, &d->frame, &block, &n, err);
	if (r < 0)
		return r;
	if (r == 0)
		r = lz4_end_frame(d, u, err);
	else
		r = lz4_unit_add(u, &d->base.feed, &d->frame, block, n, err);
	return r < 0 ? r : 1;
}

static int lz4_gather_unit(void *own, struct ahead_unit **out,
			   struct error *err)
{
	struct decoder *d = own;
	struct error why = {0};
	size_t job = JOB * (size_t)scan_window(d->base.stream.scan);
	struct unit *u;
	int r = 1;

	if (d->flying)
		return AHEAD_WAIT;
	u = lz4_unit_new(d);
	if (!u)
		return error_no_memory(err, "decoding lz4 data");
	while (r == 1 && u->room < job && u->parts.n < 4096)
		r = lz4_gather_one(d, u, &why);
	if (r == -EIO || r == -EBADMSG) {
		/* The damage is reported after the gathered bytes. */
		u->base.err = why;
	} else if (r < 0 || (r == 0 && !u->parts.n)) {
		ahead_discard(&d->base, &u->base);
		if (r < 0)
			*err = why;
		return r;
	}
	u->open = d->within && d->frame.flags & LZ4_LINKED;
	d->flying = u->open;
	u->base.cost = u->base.in_size + u->room + u->base.before;
	*out = &u->base;
	return AHEAD_UNIT;
}

/* ---- decoding ------------------------------------------------------------ */

static bool lz4_mark_piece(struct unit *u, const struct piece *piece)
{
	const struct part *part = &u->parts.at[piece->frame];
	bool first = part->begins && part->from == u->base.out_size;

	return ahead_add_mark(
		&u->base,
		(struct ahead_mark){.out = u->base.out_size,
				    .in = first ? part->frame.at : piece->at,
				    .flags = first ? POINT_START : 0,
				    .state = !first,
				    .tag = piece->frame});
}

/* Return the bytes of the frame that are in memory before byte `out` of the unit. */
static size_t lz4_frame_before(const struct unit *u, const struct part *part,
			       size_t out)
{
	return part->begins ? out - part->from : u->base.before + out;
}

static int lz4_decode_unit(struct unit *u, struct error *err)
{
	struct ahead_unit *b = &u->base;
	size_t frame = 0;

	for (size_t i = 0; i < u->pieces.n; i++) {
		const struct piece *piece = &u->pieces.at[i];
		struct part *part = &u->parts.at[piece->frame];
		bool linked = part->frame.flags & LZ4_LINKED;
		ssize_t got;

		for (; frame < piece->frame; frame++)
			u->parts.at[frame + 1].from =
				u->parts.at[frame + 1].to = b->out_size;
		if (!lz4_mark_piece(u, piece))
			return error_no_memory(err, "decoding lz4 data");
		got = lz4_decode_block(
			&part->frame, b->in + piece->off, &piece->block,
			b->out + b->before + b->out_size, u->room - b->out_size,
			linked ? lz4_frame_before(u, part, b->out_size) : 0,
			err);
		if (got < 0) {
			/* The parts after it were not decoded. */
			u->parts.n = piece->frame + 1;
			part->ends = false;
			return error_prefix(err, "at %llu: ",
					    (unsigned long long)piece->at);
		}
		b->out_size += (size_t)got;
		part->to = b->out_size;
	}
	for (frame++; frame < u->parts.n; frame++)
		u->parts.at[frame].from = u->parts.at[frame].to = b->out_size;
	return 0;
}

static int lz4_run_unit(struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;

	base->out = malloc(base->before + u->room + 1);
	if (!base->out)
		return error_no_memory(err, "decoding lz4 data");
	if (base->before)
		memcpy(base->out, u->history, base->before);
	return lz4_decode_unit(u, err);
}

static size_t lz4_mark_state(const struct ahead_unit *base,
			     const struct ahead_mark *m,
			     unsigned char to[AHEAD_STATE_MOST])
{
	const struct unit *u = (const struct unit *)base;
	const struct part *part = &u->parts.at[m->tag];
	const unsigned char *p = base->out + base->before + m->out;
	size_t n = 0;

	if (part->frame.flags & LZ4_LINKED)
		n = (size_t)min_u64(lz4_frame_before(u, part, m->out),
				    LZ4_HISTORY);
	return lz4_state_make(&part->frame, p - n, n, to);
}

/* ---- in order ------------------------------------------------------------ */

static void lz4_bad_frame(struct decoder *d, struct unit *u, size_t i,
			  const char *why)
{
	const struct part *part = &u->parts.at[i];

	error_set(&u->base.why, -EBADMSG, "lz4: %s of the frame at %llu %s",
		  why, (unsigned long long)part->frame.at, "does not match");
	if (!part->begins || part->to == part->from) {
		u->base.bad = true;
		u->base.bad_from = d->frame_at;
		u->base.bad_until = part->to;
		return;
	}
	for (size_t k = 0; k < u->base.marks.n; k++)
		if (u->base.marks.at[k].tag == i)
			u->base.marks.at[k].bad = true;
}

static void lz4_check_part(struct decoder *d, struct unit *u, size_t i)
{
	const struct part *part = &u->parts.at[i];
	bool summed = part->frame.flags & LZ4_CONTENT_SUM;

	if (part->begins) {
		d->frame_at = d->verified = u->base.at + part->from;
		d->content = 0;
		XXH32_reset(d->sum, 0);
	}
	d->content += part->to - part->from;
	if (summed)
		XXH32_update(d->sum, u->base.out + u->base.before + part->from,
			     part->to - part->from);
	if (!part->ends)
		return;
	u->base.displaced |= part->frame.content != d->content &&
			     (summed ? XXH32_digest(d->sum) != part->sum
				     : part->frame.content != UINT64_MAX);
	if (summed && XXH32_digest(d->sum) != part->sum)
		lz4_bad_frame(d, u, i, "the checksum");
	else if (part->frame.content != UINT64_MAX &&
		 part->frame.content != d->content)
		lz4_bad_frame(d, u, i, "the size");
	else
		d->verified = u->base.at + part->to;
}

/* Copy the last 64 KiB of a frame that goes on in the next unit. */
static void lz4_keep_history(struct decoder *d, const struct unit *u)
{
	const struct part *part = &u->parts.at[u->parts.n - 1];
	size_t n = lz4_frame_before(u, part, u->base.out_size);

	n = (size_t)min_u64(n, LZ4_HISTORY);
	memcpy(d->history, u->base.out + u->base.before + u->base.out_size - n,
	       n);
	d->history_size = n;
}

static int lz4_take_unit(void *own, struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;
	struct decoder *d = own;

	(void)err;
	for (size_t i = 0; i < u->parts.n && base->out; i++)
		lz4_check_part(d, u, i);
	base->verified = d->verified;
	if (u->open) {
		if (base->out)
			lz4_keep_history(d, u);
		d->flying = false;
	}
	return 0;
}

/* ---- the format ---------------------------------------------------------- */

static int lz4_open(void *own, struct error *err)
{
	struct decoder *d = own;

	d->sum = XXH32_createState();
	return d->sum ? 0 : error_no_memory(err, "decoding lz4 data");
}

static void lz4_close(void *own)
{
	XXH32_freeState(((struct decoder *)own)->sum);
}

static const struct ahead_ops ahead_ops = {
	.size = sizeof(struct decoder),
	.open = lz4_open,
	.close = lz4_close,
	.next = lz4_gather_unit,
	.run = lz4_run_unit,
	.taken = lz4_take_unit,
	.state = lz4_mark_state,
	.clear = lz4_unit_clear,
};

static const char *const suffixes[] = {".tar.lz4=.tar", ".tlz4=.tar",
				       ".lz4=", NULL};

const struct stream_format stream_lz4 = {
	.name = "lz4",
	.suffixes = suffixes,
	.frames = &lz4_frames,
	.decoder = &ahead_decoder,
	.ahead = &ahead_ops,
	.window = lz4_window,
};
