/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of deflate blocks (RFC 1951, section 3.2): codes, and the tables to look
 * them up. */
#include <string.h>

#include "base/bytes.h"
#include "stream/inflate_private.h"

#define PRE_BITS 7

/* ---- tables -------------------------------------------------------------- */

enum alphabet { LITS, DISTS, PRES };

/* Return the entry of a symbol, without the length of its code. */
static uint32_t inflate_entry_of(enum alphabet a, unsigned symbol)
{
	static const uint16_t base[29] = {
		3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
		31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
	unsigned extra;

	if (a == PRES)
		return symbol << 16;
	if (a == DISTS) {
		if (symbol >= 30)
			return SPECIAL;
		if (symbol < 4)
			return (symbol + 1) << 16;
		extra = symbol / 2 - 1;
		return (((2 + symbol % 2) << extra) + 1) << 16 | extra;
	}
	if (symbol < 256)
		return LITERAL | symbol << 16;
	if (symbol == 256)
		return SPECIAL | END;
	symbol -= 257;
	if (symbol >= 29)
		return SPECIAL;
	extra = symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1;
	return (uint32_t)base[symbol] << 16 | extra;
}

static unsigned inflate_reverse_bits(unsigned code, unsigned len)
{
	unsigned v = 0;

	for (; len; len--, code >>= 1)
		v = v << 1 | (code & 1);
	return v;
}

/* Count the codes of each length.  Return false if they are too many, or too few to
 * make each string of bits a code; but a single code of one bit is accepted, and so
 * is no code at all. */
static bool inflate_count_codes(const uint8_t *lens, unsigned n,
				enum alphabet a, unsigned count[16],
				bool *complete)
{
	unsigned codes = 0;
	int left = 1;

	memset(count, 0, 16 * sizeof *count);
	for (unsigned i = 0; i < n; i++)
		count[lens[i]]++;
	count[0] = 0;
	for (unsigned len = 1; len < 16; len++) {
		left = 2 * left - (int)count[len];
		codes += count[len];
		if (left < 0)
			return false;
	}
	*complete = left == 0;
	return *complete || !codes || (a != PRES && codes == 1 && count[1]);
}

struct table {
	uint32_t *at;
	unsigned bits, room;
	enum alphabet alphabet;
	/* Number of entries, including those of further tables. */
	unsigned used;
	unsigned prefix, sub; /* prefix and place of the last further table */
	unsigned sub_bits;
};

/* Begin a further table for all codes that begin with `prefix`.  The first of them
 * has `len` bits; `left` codes of that length are left, including it. */
static bool inflate_begin_subtable(struct table *t, unsigned prefix,
				   unsigned len, unsigned left,
				   const unsigned count[16])
{
	unsigned bits = len - t->bits;

	while (left < 1u << bits && t->bits + bits < 15) {
		bits++;
		left = 2 * left + count[t->bits + bits];
	}
	if (t->used + (1u << bits) > t->room)
		return false;
	t->prefix = prefix;
	t->sub = t->used;
	t->sub_bits = bits;
	t->used += 1u << bits;
	t->at[prefix] = SPECIAL | SUBTABLE | t->sub << 16 | bits << 8 | t->bits;
	return true;
}

static void inflate_put_entries(uint32_t *at, unsigned first, unsigned step,
				unsigned end, uint32_t entry)
{
	for (unsigned i = first; i < end; i += step)
		at[i] = entry;
}

/* Enter one code into the table.  `bits` is the code with its bits reversed, as they
 * are read. */
static bool inflate_put_code(struct table *t, unsigned symbol, unsigned bits,
			     unsigned len, unsigned left,
			     const unsigned count[16])
{
	uint32_t entry = inflate_entry_of(t->alphabet, symbol);
	unsigned size = 1u << t->bits, prefix = bits & (size - 1);

	if (len <= t->bits) {
		inflate_put_entries(t->at, bits, 1u << len, size,
				    entry + len * 0x101);
		return true;
	}
	if (prefix != t->prefix &&
	    !inflate_begin_subtable(t, prefix, len, left, count))
		return false;
	len -= t->bits;
	inflate_put_entries(t->at + t->sub, bits >> t->bits, 1u << len,
			    1u << t->sub_bits, entry + len * 0x101);
	return true;
}

static bool inflate_build_table(uint32_t *at, unsigned bits, unsigned room,
				enum alphabet a, const uint8_t *lens,
				unsigned n)
{
	struct table t = {at, bits, room, a, 1u << bits, UINT32_MAX, 0, 0};
	unsigned count[16], first[17] = {0}, code = 0, i = 0;
	uint16_t sorted[320];
	bool complete;

	if (!inflate_count_codes(lens, n, a, count, &complete))
		return false;
	if (!complete)
		inflate_put_entries(at, 0, 1, 1u << bits, SPECIAL | 1);
	for (unsigned len = 1; len < 16; len++)
		first[len + 1] = first[len] + count[len];
	for (unsigned s = 0; s < n; s++)
		if (lens[s])
			sorted[first[lens[s]]++] = (uint16_t)s;
	for (unsigned len = 1; len < 16; len++, code <<= 1)
		for (unsigned left = count[len]; left; left--)
			if (!inflate_put_code(&t, sorted[i++],
					      inflate_reverse_bits(code++, len),
					      len, left, count))
				return false;
	return true;
}

/* ---- headers ------------------------------------------------------------- */

static bool inflate_build_fixed(struct inflate *x)
{
	uint8_t lens[288];

	if (x->fixed)
		return true;
	memset(lens, 8, 144);
	memset(lens + 144, 9, 112);
	memset(lens + 256, 7, 24);
	memset(lens + 280, 8, 8);
	x->fixed = inflate_build_table(x->lit, LIT_BITS, INFLATE_LIT_ROOM, LITS,
				       lens, 288);
	memset(lens, 5, 32);
	return x->fixed &&
	       inflate_build_table(x->dist, DIST_BITS, INFLATE_DIST_ROOM, DISTS,
				   lens, 32);
}

/* Read the lengths of n codes, which are coded themselves (RFC 1951, section 3.2.7). */
static enum inflate_end inflate_read_lengths(struct inflate *x,
					     const uint32_t *pre, uint8_t *lens,
					     unsigned n)
{
	static const uint8_t extra[3] = {2, 3, 7}, least[3] = {3, 3, 11};
	unsigned have = 0;

	while (have < n) {
		unsigned symbol, times = 1;
		uint8_t len = 0;
		uint32_t e;

		inflate_fill(x);
		e = pre[x->bits & ((1 << PRE_BITS) - 1)];
		symbol = e >> 16;
		if (e & SPECIAL)
			return inflate_bad(x,
					   "an invalid code of a code length");
		if (x->n_bits <
		    (e & 255) + (symbol < 16 ? 0 : extra[symbol - 16]))
			return INFLATE_CUT;
		inflate_take(x, e & 255);
		if (symbol < 16)
			len = (uint8_t)symbol;
		else
			times = least[symbol - 16] +
				inflate_take(x, extra[symbol - 16]);
		if (symbol == 16 && !have)
			return inflate_bad(
				x,
				"a repeated length without a length before it");
		if (symbol == 16)
			len = lens[have - 1];
		if (times > n - have)
			return inflate_bad(x, "too many codes");
		memset(lens + have, len, times);
		have += times;
	}
	return INFLATE_OUTPUT;
}

static enum inflate_end inflate_read_codes(struct inflate *x)
{
	static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
					  11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint8_t lens[320] = {0}, pre_lens[19] = {0};
	uint32_t pre[1 << PRE_BITS];
	unsigned lits, dists, pres;
	enum inflate_end r;

	inflate_fill(x);
	if (x->n_bits < 14)
		return INFLATE_CUT;
	lits = inflate_take(x, 5) + 257;
	dists = inflate_take(x, 5) + 1;
	pres = inflate_take(x, 4) + 4;
	if (lits > 286 || dists > 30)
		return inflate_bad(x, "too many codes");
	for (unsigned i = 0; i < pres; i++) {
		inflate_fill(x);
		if (x->n_bits < 3)
			return INFLATE_CUT;
		pre_lens[order[i]] = (uint8_t)inflate_take(x, 3);
	}
	if (!inflate_build_table(pre, PRE_BITS, 1 << PRE_BITS, PRES, pre_lens,
				 19))
		return inflate_bad(x, "invalid code lengths");
	r = inflate_read_lengths(x, pre, lens, lits + dists);
	if (r != INFLATE_OUTPUT)
		return r;
	x->fixed = false;
	if (!lens[256] ||
	    !inflate_build_table(x->lit, LIT_BITS, INFLATE_LIT_ROOM, LITS, lens,
				 lits) ||
	    !inflate_build_table(x->dist, DIST_BITS, INFLATE_DIST_ROOM, DISTS,
				 lens + lits, dists))
		return inflate_bad(x, "invalid code lengths");
	return INFLATE_OUTPUT;
}

static enum inflate_end inflate_read_stored(struct inflate *x)
{
	const unsigned char *b;

	inflate_take(x, x->n_bits % 8);
	inflate_unread(x);
	if (x->end - x->in < 4)
		return INFLATE_CUT;
	b = x->in;
	x->in += 4;
	x->stored = load_le16(b);
	if (x->stored != (load_le16(b + 2) ^ 0xffffu))
		return inflate_bad(x, "impossible length of a stored block");
	return INFLATE_OUTPUT;
}

enum inflate_end inflate_read_header(struct inflate *x)
{
	unsigned type;

	x->header_at = inflate_bit(x);
	inflate_fill(x);
	if (x->n_bits < 3)
		return INFLATE_CUT;
	x->final = inflate_take(x, 1);
	type = inflate_take(x, 2);
	if (type == 3)
		return inflate_bad(x, "unknown type of block");
	x->block = type ? INFLATE_CODED : INFLATE_STORED;
	if (type == 0)
		return inflate_read_stored(x);
	if (type == 2)
		return inflate_read_codes(x);
	return inflate_build_fixed(x) ? INFLATE_OUTPUT
				      : inflate_bad(x, "no fixed codes");
}
