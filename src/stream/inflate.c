/* SPDX-License-Identifier: BSD-2-Clause */
/* A decoder of deflate data (RFC 1951) that can start before any code and stop after
 * any. */
/*
 * Seek points need a decoder that stops at any bit and says where that is, and where
 * the header of its block is.  Libraries that do this take twice the time, and users
 * wait for the first pass over a large file.
 *
 * A code is looked up by the next 11 bits (8 for distances) in a table whose entries
 * hold all that it means:
 *
 *	31       16 15 14 13 12 11    8 7          0
 *	base        S  T  E     code    code + extra    bits to take
 *	start       S  T        bits    11              of another table, for
 *	                                                what is longer
 *
 * A literal has bit 31 set and its value as base.  S marks special entries: with T a
 * further table, with E the end of the block; S alone is not a code.
 *
 * There are two loops.  The fast one takes 8 bytes at a time and copies in words, so it
 * runs only while input and output have room for that.  The careful one goes code by
 * code and checks for the ends of both.  In either a code is taken completely or not at
 * all.
 */
#include "stream/inflate.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "stream/inflate_private.h"

/* Most bytes that one turn of the fast loop reads and writes, copies in words
 * included. */
#define FAST_IN 32
#define FAST_OUT 288

/* ---- where it is --------------------------------------------------------- */

void inflate_unread(struct inflate *x)
{
	x->in -= x->n_bits / 8;
	x->n_bits %= 8;
	x->bits &= (UINT64_C(1) << x->n_bits) - 1;
}

uint64_t inflate_bit(const struct inflate *x)
{
	return (x->end_at - (uint64_t)(x->end - x->in)) * 8 - x->n_bits;
}

void inflate_reset(struct inflate *x)
{
	x->bits = 0;
	x->n_bits = 0;
	x->block = INFLATE_BETWEEN;
	x->final = false;
	x->stored = 0;
}

bool inflate_skip(struct inflate *x, unsigned n)
{
	inflate_fill(x);
	if (x->n_bits < n)
		return false;
	inflate_take(x, n);
	return true;
}

bool inflate_header(struct inflate *x)
{
	return inflate_read_header(x) == INFLATE_OUTPUT;
}

/* ---- bytes --------------------------------------------------------------- */

static enum inflate_end inflate_copy_stored(struct inflate *x,
					    struct inflate_out *o)
{
	size_t n = x->stored;

	inflate_unread(x);
	n = (size_t)min_u64(n, (uint64_t)(x->end - x->in));
	n = (size_t)min_u64(n, (uint64_t)(o->end - o->next));
	if (n)
		memcpy(o->next, x->in, n);
	o->next += n;
	x->in += n;
	x->stored -= (uint32_t)n;
	if (!x->stored)
		x->block = INFLATE_BETWEEN;
	else if (o->next == o->end)
		return INFLATE_OUTPUT;
	else
		return x->more ? INFLATE_INPUT : INFLATE_CUT;
	return INFLATE_DONE;
}

/* Copy a match that begins before `start`.  Return the end of the copy, or NULL if
 * the match begins before all known bytes. */
static unsigned char *copy_before(const struct inflate_out *o,
				  unsigned char *out, size_t dist, size_t len)
{
	size_t back = dist - (size_t)(out - o->start);
	const unsigned char *from = o->start;

	if (back > o->n_before)
		return NULL;
	for (; back && len; back--, len--)
		*out++ = o->before[o->n_before - back];
	while (len--)
		*out++ = *from++;
	return out;
}

/* Copy a match in words.  Up to 15 bytes more than `len` are written. */
static inline unsigned char *copy_words(unsigned char *out, size_t dist,
					size_t len)
{
	const unsigned char *from = out - dist;
	unsigned char *end = out + len;

	if (dist >= 16) {
		do {
			memcpy(out, from, 16);
			out += 16;
			from += 16;
		} while (out < end);
	} else if (dist == 1) {
		memset(out, *from, len);
	} else {
		do { /* in steps no longer than the distance */
			uint64_t word;

			memcpy(&word, from, 8);
			memcpy(out, &word, 8);
			out += dist < 8 ? dist : 8;
			from += dist < 8 ? dist : 8;
		} while (out < end);
	}
	return end;
}

static void note_used(const struct inflate_out *o, const unsigned char *from,
		      size_t len)
{
	size_t back;

	if (from >= o->since)
		return;
	back = (size_t)(o->since - from);
	memset(o->used + INFLATE_HISTORY - back, 1, (size_t)min_u64(len, back));
}

/* Copy `len` bytes from `dist` bytes back; the output must have room.  Return the
 * end of the copy, or NULL if the match begins before all known bytes. */
static unsigned char *copy_bytes(const struct inflate_out *o,
				 unsigned char *out, size_t dist, size_t len)
{
	if (dist > (size_t)(out - o->start))
		return copy_before(o, out, dist, len);
	if (o->used)
		note_used(o, out - dist, len);
	for (; len; len--, out++)
		*out = *(out - dist);
	return out;
}

/* ---- the careful loop ---------------------------------------------------- */

/* Look the next code up in a table.  The bits that it takes are added to *taken. */
static uint32_t inflate_look_up(const uint32_t *table, unsigned bits,
				uint64_t b, unsigned *taken)
{
	uint32_t e = table[b & ((1u << bits) - 1)];

	if ((e & (LITERAL | SPECIAL | SUBTABLE)) == (SPECIAL | SUBTABLE)) {
		*taken += e & 255;
		b >>= e & 255;
		e = table[(e >> 16) + (b & ((1u << (e >> 8 & 15)) - 1))];
	}
	*taken += e & 255;
	return e;
}

/* Return the base of an entry plus its extra bits, which are the last of the `taken`
 * bits. */
static size_t inflate_value_of(uint32_t e, uint64_t bits, unsigned taken)
{
	unsigned extra = (e & 255) - (e >> 8 & 15);

	return (e >> 16) +
	       (size_t)(bits >> (taken - extra) & ((1u << extra) - 1));
}

/* Decode a match, whose length is in the first `taken` bits. */
static enum inflate_end inflate_one_match(struct inflate *x,
					  struct inflate_out *o, uint32_t e,
					  unsigned taken)
{
	size_t len = inflate_value_of(e, x->bits, taken);
	uint64_t rest = x->bits >> taken;
	unsigned more = 0;
	unsigned char *out;

	if (len > (size_t)(o->end - o->next))
		return INFLATE_OUTPUT;
	e = inflate_look_up(x->dist, DIST_BITS, rest, &more);
	if (taken + more > x->n_bits)
		return INFLATE_CUT;
	if (e & SPECIAL)
		return inflate_bad(x, "an invalid distance");
	out = copy_bytes(o, o->next, inflate_value_of(e, rest, more), len);
	if (!out)
		return inflate_bad(x, "a match from before the beginning");
	o->next = out;
	inflate_take(x, taken);
	inflate_take(x, more);
	return INFLATE_INPUT;
}

/* Decode one code.  INFLATE_INPUT means that decoding can go on, INFLATE_DONE that
 * the block has ended. */
static enum inflate_end inflate_one_code(struct inflate *x,
					 struct inflate_out *o)
{
	unsigned taken = 0;
	uint32_t e;

	inflate_fill(x);
	e = inflate_look_up(x->lit, LIT_BITS, x->bits, &taken);
	if (taken > x->n_bits)
		return INFLATE_CUT;
	if (!(e & LITERAL) && e & SPECIAL) {
		if (!(e & END))
			return inflate_bad(x, "an invalid code");
		inflate_take(x, taken);
		x->block = INFLATE_BETWEEN;
		return INFLATE_DONE;
	}
	if (o->next == o->end)
		return INFLATE_OUTPUT;
	if (!(e & LITERAL))
		return inflate_one_match(x, o, e, taken);
	*o->next++ = (unsigned char)(e >> 16);
	inflate_take(x, taken);
	return INFLATE_INPUT;
}

/* ---- the fast loop ------------------------------------------------------- */

/* Have at least 56 bits; the bits above them are correct, but not counted.  Only the
 * lowest byte of `n` counts bits: entries are subtracted as they are. */
#define REFILL                                     \
	do {                                       \
		bits |= load_le64(in) << (n & 63); \
		in += 7 - (n >> 3 & 7);            \
		n |= 56;                           \
	} while (0)
#define TAKE(e)                  \
	do {                     \
		bits >>= (e)&63; \
		n -= (e);        \
	} while (0)
#define LOW(v, n) ((v) & ((UINT64_C(1) << (n)) - 1))
#define LIT(v) lit[LOW(v, LIT_BITS)]
/* Base plus extra bits of an entry whose code begins at the lowest bit. */
#define VALUE(e) (((e) >> 16) + (LOW(bits, (e)&63) >> ((e) >> 8 & 15)))

/* The fast loop.  INFLATE_INPUT means that there is no room for another turn.  Two
 * literals take at most 22 bits, a length 20, a distance 28.  The next code is
 * looked up before a match is copied, so that the two latencies overlap. */
static inline __attribute__((always_inline)) enum inflate_end
inflate_fast(struct inflate *x, struct inflate_out *o, bool noting)
{
	const unsigned char *in = x->in, *in_stop = x->end - FAST_IN;
	unsigned char *out = o->next, *out_stop = o->end - FAST_OUT;
	const uint32_t *lit = x->lit, *dists = x->dist;
	enum inflate_end r = INFLATE_INPUT;
	uint64_t bits = x->bits;
	unsigned n = x->n_bits;
	uint32_t e;

	REFILL;
	e = LIT(bits);
	while (in <= in_stop && out <= out_stop) {
		size_t len, dist;
		uint32_t d;

		if (e & LITERAL) {
			TAKE(e);
			*out++ = (unsigned char)(e >> 16);
			e = LIT(bits);
			if (e & LITERAL) {
				TAKE(e);
				*out++ = (unsigned char)(e >> 16);
				e = LIT(bits);
				if (e & LITERAL) {
					TAKE(e);
					*out++ = (unsigned char)(e >> 16);
					REFILL;
					e = LIT(bits);
					continue;
				}
			}
		}
		if (e & SPECIAL) {
			if (e & SUBTABLE) {
				TAKE(e);
				e = lit[(e >> 16) + LOW(bits, e >> 8 & 15)];
			}
			if (e & LITERAL) {
				TAKE(e);
				*out++ = (unsigned char)(e >> 16);
				REFILL;
				e = LIT(bits);
				continue;
			}
			if (e & SPECIAL) {
				r = e & END ? INFLATE_DONE
					    : inflate_bad(x, "an invalid code");
				TAKE(e);
				break;
			}
		}
		len = VALUE(e);
		TAKE(e);
		if ((n & 63) < 28)
			REFILL;
		d = dists[LOW(bits, DIST_BITS)];
		if (d & SPECIAL) {
			if (d & SUBTABLE) {
				TAKE(d);
				d = dists[(d >> 16) + LOW(bits, d >> 8 & 15)];
			}
			if (d & SPECIAL) {
				r = inflate_bad(x, "an invalid distance");
				break;
			}
		}
		dist = VALUE(d);
		TAKE(d);
		REFILL;
		e = LIT(bits);
		if (dist > (size_t)(out - o->start)) {
			unsigned char *to = copy_before(o, out, dist, len);

			if (!to) {
				r = inflate_bad(
					x, "a match from before the beginning");
				break;
			}
			out = to;
			continue;
		}
		if (noting)
			note_used(o, out - dist, len);
		out = copy_words(out, dist, len);
	}
	x->in = in;
	x->bits = bits;
	x->n_bits = n & 63;
	o->next = out;
	if (r == INFLATE_DONE)
		x->block = INFLATE_BETWEEN;
	return r;
}

static enum inflate_end inflate_fast_plain(struct inflate *x,
					   struct inflate_out *o)
{
	return inflate_fast(x, o, false);
}

static enum inflate_end inflate_fast_noting(struct inflate *x,
					    struct inflate_out *o)
{
	return inflate_fast(x, o, true);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("bmi2"))) static enum inflate_end
inflate_fast_bmi2(struct inflate *x, struct inflate_out *o)
{
	return inflate_fast(x, o, false);
}

static bool has_bmi2(void)
{
	return __builtin_cpu_supports("bmi2");
}
#else
#define inflate_fast_bmi2 inflate_fast_plain
static bool has_bmi2(void)
{
	return false;
}
#endif

/* Decode codes until the block, the input or the output ends. */
static enum inflate_end inflate_run_codes(struct inflate *x,
					  struct inflate_out *o)
{
	enum inflate_end r = INFLATE_INPUT;

	while (r == INFLATE_INPUT) {
		bool ends = x->end - x->in < FAST_IN;

		if (ends && x->more)
			return INFLATE_INPUT;
		if (ends || o->end - o->next < FAST_OUT)
			r = inflate_one_code(x, o);
		else if (o->used)
			r = inflate_fast_noting(x, o);
		else
			r = has_bmi2() ? inflate_fast_bmi2(x, o)
				       : inflate_fast_plain(x, o);
	}
	return r;
}

enum inflate_end inflate_run(struct inflate *x, struct inflate_out *o)
{
	enum inflate_end r = INFLATE_DONE;

	while (r == INFLATE_DONE || r == INFLATE_INPUT) {
		switch (x->block) {
		case INFLATE_STORED:
			r = inflate_copy_stored(x, o);
			break;
		case INFLATE_CODED:
			r = inflate_run_codes(x, o);
			break;
		case INFLATE_BETWEEN:
			if (x->final) {
				inflate_take(x, x->n_bits % 8);
				inflate_unread(x);
				return INFLATE_DONE;
			}
			if (x->more && x->end - x->in < INFLATE_HEADER_MAX)
				return INFLATE_INPUT;
			r = inflate_read_header(x);
			if (r == INFLATE_OUTPUT)
				r = INFLATE_DONE;
			break;
		}
		if (r == INFLATE_INPUT)
			return r;
	}
	return r;
}
