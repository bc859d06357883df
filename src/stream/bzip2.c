/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of bzip2: blocks found by their magic numbers, decoded in parallel. */
/*
 * The data is cut where a block seems to begin, and the units between the cuts are
 * decoded on all threads.  If a unit did not decode, the cut may have been wrong: when
 * it is taken, its real end is found by decoding, and everything after it is cut anew.
 * So the feed keeps all bytes from the oldest unit on.
 *
 * Every block is a point. libbz2 verifies the CRC of each block, this file that of each
 * stream.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_BZIP2
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "stream/ahead.h"
#include "stream/bzip2_block.h"

struct unit {
	struct ahead_unit base;
	/* The first block of a stream, or the end of an empty stream. */
	bool begins;
	bool ends; /* the unit is the end of a stream, and not a block */
	bool tail; /* the data ends with it */
	char level;
	uint32_t crc;
	uint64_t bit, end;
};
struct decoder {
	struct ahead_decoder base;
	/* Cutting. */
	uint64_t bit;
	bool header; /* the header of a stream is next */
	bool first;  /* that is the first one of the file */
	bool begins; /* no block of the stream was seen yet */
	char level;
	/* Taking. */
	uint64_t stream_at; /* decoded bytes before the stream */
	uint32_t crc;       /* combined CRC of its blocks so far */
};

/* ---- cutting ------------------------------------------------------------- */

static int bzip2_cut_block(struct decoder *d, struct unit *u, struct error *err)
{
	const unsigned char *p;
	size_t n;
	ssize_t have;
	int r = bzip2_find_end(&d->base.feed, d->bit,
			       d->bit + BZIP2_STREAM_END_BITS, &u->end, err);

	if (r < 0)
		return r;
	u->tail = r == 0;
	n = (size_t)((u->end + 7) / 8 - u->bit / 8);
	p = bzip2_bytes(&d->base.feed, u->bit, n, &have, err);
	if (!p || (size_t)have < n)
		return have < 0
			       ? (int)have
			       : error_set(
					 err, -EIO,
					 "bzip2: the data ends within a block");
	u->base.in = malloc(n);
	if (!u->base.in)
		return error_no_memory(err, "decoding bzip2 data");
	memcpy(u->base.in, p, n);
	u->base.in_size = n;
	/* libbz2 takes 4 bytes for each symbol of a block. */
	u->base.cost = n + (size_t)(u->level - '0') * 500000;
	d->bit = u->end;
	return 0;
}

/* Pass the header of a stream.  Return 1, 0 if there is no further stream, or
 * -errno. */
static int bzip2_pass_header(struct decoder *d, struct error *err)
{
	uint32_t crc;
	int r = bzip2_look(&d->base.feed, d->bit, true, &crc, &d->level, err);

	if (r == BZIP2_END && d->first)
		return error_set(
			err, -EBADMSG,
			"bzip2: the file does not begin with a bzip2 header");
	if (r <= 0)
		return r;
	d->bit += BZIP2_STREAM_BITS;
	d->first = d->header = false;
	d->begins = true;
	return 1;
}

static int bzip2_cut_unit(void *own, struct ahead_unit **out, struct error *err)
{
	struct decoder *d = own;
	struct unit *u;
	uint32_t crc;
	int what, r = d->header ? bzip2_pass_header(d, err) : 1;

	if (r <= 0)
		return r < 0 ? r : AHEAD_END;
	what = bzip2_look(&d->base.feed, d->bit, false, &crc, NULL, err);
	if (what < 0)
		return what;
	u = calloc(1, sizeof *u);
	if (!u)
		return error_no_memory(err, "decoding bzip2 data");
	u->begins = d->begins;
	u->level = d->level;
	u->bit = d->bit;
	u->crc = crc;
	if (what == BZIP2_BLOCK) {
		r = bzip2_cut_block(d, u, err);
		d->begins = false;
	} else {
		u->ends = true;
		d->bit = u->end = (d->bit + BZIP2_STREAM_END_BITS + 7) / 8 * 8;
		d->header = true;
	}
	if (r < 0) {
		ahead_discard(&d->base, &u->base);
		return r;
	}
	*out = &u->base;
	return AHEAD_UNIT;
}

/* ---- decoding ------------------------------------------------------------ */

static int bzip2_decode_unit(struct unit *u, const unsigned char *p,
			     struct error *err)
{
	struct bzip2_out out = {.most = BZIP2_DECODED_MOST, .own = true};
	int r = bzip2_decode_block(p, u->bit % 8, u->end - u->bit, u->level,
				   u->crc, u->tail, &out, err);

	free(u->base.out);
	u->base.out = out.at;
	u->base.out_size = r == 0 ? out.n : 0;
	return r;
}

static int bzip2_run_unit(struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;

	return u->ends ? 0 : bzip2_decode_unit(u, base->in, err);
}

/* ---- in order ------------------------------------------------------------ */

/* Handle a block that did not decode: find its real end and cut all that follows
 * anew.  Return 0, -EBADMSG if the block is damaged, or -errno. */
static int bzip2_cut_again(struct decoder *d, struct unit *u)
{
	struct error why = {0};
	const unsigned char *p;
	uint64_t end = u->end;
	ssize_t n;
	int r = bzip2_real_end(&d->base.feed, u->bit, u->level, &end, &why);

	if (r == 0) {
		u->end = end;
		p = bzip2_bytes(&d->base.feed, u->bit,
				(size_t)((end + 7) / 8 - u->bit / 8), &n, &why);
		r = p ? bzip2_decode_unit(u, p, &why) : (int)n;
	}
	if (r == 0) {
		u->base.err.code = 0;
		ahead_drop(&d->base);
		d->bit = end;
		d->header = d->begins = false;
		d->level = u->level;
	} else if (r != -EBADMSG) {
		u->base.err = why;
	}
	return r;
}

/* Complete the error of a block that could not be decoded and ends the stream. */
static void bzip2_explain_end(struct decoder *d, struct unit *u)
{
	uint64_t at = u->bit / 8;

	if (u->tail && u->end / 8 >= scan_from(d->base.stream.scan)->size &&
	    u->base.err.code == -EBADMSG)
		error_set(&u->base.err, -EIO,
			  "bzip2: the data ends within the block at %llu: "
			  "truncated?",
			  (unsigned long long)at);
	else
		error_prefix(&u->base.err, "at %llu: ", (unsigned long long)at);
}

static bool bzip2_mark_block(struct unit *u)
{
	uint64_t in = (u->bit + 7) / 8;

	return ahead_add_mark(
		&u->base,
		(struct ahead_mark){.in = in,
				    .bits = (uint8_t)(in * 8 - u->bit),
				    .flags = POINT_START});
}

static void bzip2_end_stream(struct decoder *d, struct unit *u)
{
	if (u->crc == (u->begins ? 0 : d->crc))
		return;
	error_set(&u->base.why, -EBADMSG,
		  "bzip2: the CRC of the stream that ends at %llu does not "
		  "match",
		  (unsigned long long)(u->end / 8));
	u->base.bad = u->base.displaced = true;
	u->base.bad_from = u->begins ? u->base.at : d->stream_at;
}

static int bzip2_take_unit(void *own, struct ahead_unit *base,
			   struct error *err)
{
	struct unit *u = (struct unit *)base;
	struct decoder *d = own;
	uint64_t keep = u->bit / 8;

	base->verified = base->at;
	if (u->ends) {
		bzip2_end_stream(d, u);
		keep = u->end / 8;
	} else if (base->err.code == -EBADMSG && !u->tail) {
		bzip2_cut_again(d, u);
	}
	if (base->err.code) {
		bzip2_explain_end(d, u);
		return 0;
	}
	if (!u->ends) {
		if (u->begins) {
			d->stream_at = base->at;
			d->crc = 0;
		}
		d->crc = (d->crc << 1 | d->crc >> 31) ^ u->crc;
		keep = u->end / 8;
		if (!bzip2_mark_block(u))
			return error_no_memory(err, "decoding bzip2 data");
	}
	if (keep > d->base.feed.at)
		slide_drop(&d->base.feed,
			   (size_t)min_u64(keep - d->base.feed.at,
					   d->base.feed.n));
	return 0;
}

/* ---- the format ---------------------------------------------------------- */

static int bzip2_open(void *own, struct error *err)
{
	struct decoder *d = own;

	(void)err;
	d->first = d->header = true;
	return 0;
}

static const struct ahead_ops ahead_ops = {
	.size = sizeof(struct decoder),
	.open = bzip2_open,
	.next = bzip2_cut_unit,
	.run = bzip2_run_unit,
	.taken = bzip2_take_unit,
};

static int bzip2_probe(const unsigned char *head, size_t n)
{
	static const unsigned char block[6] = {0x31, 0x41, 0x59,
					       0x26, 0x53, 0x59};
	static const unsigned char end[6] = {0x17, 0x72, 0x45,
					     0x38, 0x50, 0x90};

	if (n < 10 || memcmp(head, "BZh", 3) != 0 || head[3] < '1' ||
	    head[3] > '9')
		return 0;
	return memcmp(head + 4, block, 6) && memcmp(head + 4, end, 6) ? 0 : 100;
}

/* ---- windows ------------------------------------------------------------- */

/* Decode the block at *bit and set *bit to its end. */
static int bzip2_decode_next(struct slide *f, uint64_t *bit, uint32_t crc,
			     struct bzip2_out *out, struct error *err)
{
	uint64_t end = 0;
	struct error why;
	int r = bzip2_find_end(f, *bit, *bit + BZIP2_STREAM_END_BITS, &end,
			       err);
	bool tail = r == 0, again = false;

	while (r >= 0) {
		size_t n = (size_t)((end + 7) / 8 - *bit / 8);
		ssize_t have;
		const unsigned char *p = bzip2_bytes(f, *bit, n, &have, err);

		if (!p)
			return (int)have;
		r = bzip2_decode_block(p, *bit % 8, end - *bit, '9', crc, tail,
				       out, &why);
		if (r == 0) {
			*bit = end;
			return 0;
		}
		if (r != -EBADMSG || tail || again) {
			if (err)
				*err = why;
			return r;
		}
		again = true;
		r = bzip2_real_end(f, *bit, '9', &end, err);
	}
	return r;
}

static int bzip2_decode_window(struct slide *f, uint64_t bit,
			       struct bzip2_out *out, struct error *err)
{
	bool header = false;
	uint32_t crc;
	char level;

	while (out->n < out->room) {
		int r = bzip2_look(f, bit, header, &crc, &level, err);

		if (r == BZIP2_END)
			r = error_set(err, -EBADMSG,
				      "bzip2: the data ends within a window");
		if (r < 0)
			return r;
		if (r == BZIP2_BLOCK) {
			r = bzip2_decode_next(f, &bit, crc, out, err);
			if (r < 0)
				return r;
		} else if (r == BZIP2_STREAM_END) {
			bit = (bit + BZIP2_STREAM_END_BITS + 7) / 8 * 8;
		} else {
			bit += BZIP2_STREAM_BITS;
		}
		header = r == BZIP2_STREAM_END;
		slide_drop(f, (size_t)min_u64(bit / 8 - f->at, f->n));
	}
	return 0;
}

static int bzip2_window(struct stream *s, uint64_t i, unsigned char *out,
			struct error *err)
{
	const struct stream_point *p = &s->point[i];
	struct bzip2_out to = {.at = out, .room = p->size};
	struct slide f;
	int r;

	slide_of_stream(&f, s, p->bits ? p->in - 1 : p->in);
	r = bzip2_decode_window(&f, p->in * 8 - p->bits, &to, err);
	slide_free(&f);
	return r;
}

static const char *const suffixes[] = {
	".tar.bz2=.tar", ".tbz2=.tar", ".tbz=.tar", ".tb2=.tar",
	".tz2=.tar",     ".bz2=",      ".bz=",      NULL};

const struct stream_format stream_bzip2 = {
	.name = "bzip2",
	.suffixes = suffixes,
	.probe = bzip2_probe,
	.decoder = &ahead_decoder,
	.ahead = &ahead_ops,
	.window = bzip2_window,
};
#endif
