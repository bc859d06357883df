/* SPDX-License-Identifier: BSD-2-Clause */
/* Deflate data (RFC 1951), decoded from any code on and stopped behind any. */
/*
 * Seek points want a decoder that stops at any bit and says where that is, and the
 * header of which block it is in.  Libraries that do take twice the time; the first
 * pass over a large file is a wait.
 *
 * A code is looked up by the next 11 bits (8 for distances) in a table whose entries
 * have all that follows from it:
 *
 *	31       16 15 14 13 12 11    8 7          0
 *	base        S  T  E     code    code + extra    bits to take
 *	start       S  T        bits    11              of another table, for
 *	                                                what is longer
 *
 * A literal has bit 31 set and its value as base.  S: none of the usual; T: another
 * table; E: the end of the block; S alone: no code.
 *
 * There are two loops.  The fast one takes 8 bytes at a time and copies in words,
 * so it runs only while there is room for that on both sides.  The other one goes
 * code by code; it is for ends, and knows them.  Whichever it is: a code is taken
 * wholly or not at all.
 */
#include "stream/inflate.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "stream/inflate_private.h"

/* What one turn of the fast loop may take and make, copies in words included. */
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

/* A match that begins before `start`; where it ends, NULL: further back than
 * there is anything. */
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

/* Up to 15 bytes more are written. */
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
		do { /* in steps of what is there already */
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

/* `dist` bytes back, `len` bytes; room for them is there.  NULL: out of reach. */
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

/* The code that comes next, looked up; the bits that it takes with those before.*/
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

/* Base and extra bits, which end with the bits that were taken. */
static size_t inflate_value_of(uint32_t e, uint64_t bits, unsigned taken)
{
	unsigned extra = (e & 255) - (e >> 8 & 15);

	return (e >> 16) +
	       (size_t)(bits >> (taken - extra) & ((1u << extra) - 1));
}

/* A match, whose length is in the `taken` bits. */
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
		return inflate_bad(x, "no such distance");
	out = copy_bytes(o, o->next, inflate_value_of(e, rest, more), len);
	if (!out)
		return inflate_bad(x, "a match from before the beginning");
	o->next = out;
	inflate_take(x, taken);
	inflate_take(x, more);
	return INFLATE_INPUT;
}

/* One code.  INFLATE_INPUT: go on; INFLATE_DONE: that was the block. */
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
			return inflate_bad(x, "no such code");
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

/* 56 bits at least; those above are right, too, if not counted.  Of `n` only the
 * lowest byte means anything: entries are subtracted as they are. */
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
/* Base and extra bits of an entry that begins at the lowest bit. */
#define VALUE(e) (((e) >> 16) + (LOW(bits, (e)&63) >> ((e) >> 8 & 15)))

/* INFLATE_INPUT: no room for another turn.  Two literals take 22 bits at most, a
 * length 20, a distance 28.  The next code is looked up before a match is copied,
 * so that waiting for the one hides the other. */
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
					    : inflate_bad(x, "no such code");
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
				r = inflate_bad(x, "no such distance");
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

/* Codes until the block ends, or something else does. */
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
