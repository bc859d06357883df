/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of single codecs share: data, decoding in exact room, damage. */
#ifndef TESTS_UNIT_CODEC_TEST_H
#define TESTS_UNIT_CODEC_TEST_H

/*
 * A codec's test says which bytes are stored, what they decode to, and what the
 * codec promises of such bytes once they are damaged:
 *
 *	const struct codec_test t = {&codec_bzip2, &none, in, in_len, plain, n};
 *
 *	codec_test_decodes(&t);
 *	codec_test_damage(&t, in_len, CODEC_TEST_REFUSED,
 *			  CODEC_TEST_REFUSED | CODEC_TEST_PREFIX);
 *
 * Decoders read from and write to exactly as many bytes of the heap as they
 * were told of, so that a sanitizer sees any step outside.
 */
#include <errno.h>

#include "codec/codec.h"
#include "test.h"

/* One chunk: what is stored, and what it decodes to. */
struct codec_test {
	const struct codec *codec;
	const struct codec_params *params;
	const void *in;
	size_t in_len;
	const void *plain;
	size_t n;
};
/* One for the length of a call. */
#define CODEC_TEST(...) (&(const struct codec_test){__VA_ARGS__})

/* ---- data ---------------------------------------------------------------- */

/* `n` bytes on the heap, those at `from`; the caller frees them. */
static inline unsigned char *codec_test_copy(const void *from, size_t n)
{
	unsigned char *p = malloc(n ? n : 1);

	CHECK(p);
	if (n)
		memcpy(p, from, n);
	return p;
}

/* `n` bytes of `byte` on the heap; the caller frees them. */
static inline unsigned char *codec_test_filled(int byte, size_t n)
{
	unsigned char *p = malloc(n ? n : 1);

	CHECK(p);
	memset(p, byte, n);
	return p;
}

/* What bitshuffle is defined to do to n elements, bit by bit. */
static inline void codec_test_shuffle_bits(const unsigned char *in, size_t n,
					   size_t elem, unsigned char *out)
{
	memset(out, 0, n * elem);
	for (size_t i = 0; i < n; i++)
		for (size_t bit = 0; bit < 8 * elem; bit++)
			if (in[i * elem + bit / 8] >> bit % 8 & 1)
				out[bit * (n / 8) + i / 8] |=
					(unsigned char)(1u << i % 8);
}

/*
 * Random bytes that compress more or less: runs of one byte, repeats of what is
 * a few elements of `width` bytes or far behind, small numbers, noise.  The
 * caller frees them.
 */
static inline unsigned char *codec_test_random(size_t n, size_t width)
{
	unsigned char *p = codec_test_filled(0, n);
	size_t i = 0;

	while (i < n) {
		size_t run = 1 + test_random() % 600;
		size_t back = width * (1 + test_random() % 40);
		unsigned kind = test_random() % 5;
		unsigned char byte = (unsigned char)test_random();

		for (; run && i < n; run--, i++) {
			if (kind == 0)
				p[i] = byte;
			else if (kind == 1 && i >= back)
				p[i] = p[i - back];
			else if (kind == 2 && i >= 5000)
				p[i] = p[i - 5000];
			else if (kind == 3)
				p[i] = i % width ? 0 : test_random() % 3;
			else
				p[i] = (unsigned char)test_random();
		}
	}
	return p;
}

/* Write `v` as a number of `size` bytes (8 at most), the most significant one
 * first if `big`; returns `size`. */
static inline size_t codec_test_put(unsigned char *to, uint64_t v,
				    unsigned size, bool big)
{
	for (unsigned i = 0; i < size; i++)
		to[big ? size - 1 - i : i] = (unsigned char)(v >> 8 * i);
	return size;
}

/* Number `i` of those that the golden vectors were made of: three of each
 * value, every fourth value 0. */
static inline unsigned codec_test_value(size_t i)
{
	size_t k = i / 3;

	return k % 4 ? (unsigned)(7 * k * k % 300) : 0;
}

/*
 * The first `n` of them as numbers of `width` bytes: kind 'u' or 'f', the most
 * significant byte first if `big`; those of one byte are below 100.  Valid
 * until the next call.
 */
static inline const unsigned char *codec_test_numbers(char kind, unsigned width,
						      size_t n, bool big)
{
	static unsigned char bytes[2400];

	CHECK(n * width <= sizeof bytes);
	for (size_t i = 0; i < n; i++) {
		unsigned v = codec_test_value(i);
		uint64_t raw = v;
		uint32_t single;
		double d = v;
		float f = (float)v;

		memcpy(&single, &f, sizeof single);
		if (kind == 'f' && width == 8)
			memcpy(&raw, &d, sizeof raw);
		else if (kind == 'f')
			raw = single;
		else if (width == 1)
			raw = v % 100;
		codec_test_put(bytes + i * width, raw, width, big);
	}
	return bytes;
}

/* ---- decoding ------------------------------------------------------------ */

/* The codec's decode, of a copy of the bytes; checks that it keeps to the
 * contract of its results. */
static inline int codec_test_decode(const struct codec *c,
				    const struct codec_params *p,
				    const void *in, size_t in_len, void *out,
				    size_t cap, size_t *len)
{
	unsigned char *stored = codec_test_copy(in, in_len);
	struct error err = {0, ""};
	int r = c->decode(p, stored, in_len, out, cap, len, &err);

	CHECK_EQ_I(err.code, r);
	CHECK((r == 0) == !err.text[0]);
	CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
	CHECK(r < 0 || *len <= cap);
	free(stored);
	return r;
}

/* What decoding with so much room returns, where the bytes do not matter. */
static inline int codec_test_try(const struct codec *c,
				 const struct codec_params *p, const void *in,
				 size_t in_len, size_t room)
{
	unsigned char *out = codec_test_filled(0x5a, room);
	size_t len;
	int r = codec_test_decode(c, p, in, in_len, out, room, &len);

	free(out);
	return r;
}

/* Decodes with so much room, of bytes `old` before; with `neat` the rest of it
 * still has them afterwards. */
static inline void codec_test_room(const struct codec_test *t, size_t room,
				   unsigned char old, bool neat)
{
	unsigned char *out = codec_test_filled(old, room);
	size_t len = SIZE_MAX;

	CHECK_OK(codec_test_decode(t->codec, t->params, t->in, t->in_len, out,
				   room, &len));
	CHECK_EQ_U(len, t->n);
	CHECK_MEM(out, t->plain, t->n);
	for (size_t i = t->n; neat && i < room; i++)
		CHECK_EQ_U(out[i], old);
	free(out);
}

static inline void codec_test_rooms(const struct codec_test *t, bool neat)
{
	if (t->codec->check)
		CHECK_OK(t->codec->check(t->params, NULL));
	codec_test_room(t, t->n, 0xee, neat);
	codec_test_room(t, t->n + 100, 0xa5, neat);
	if (t->n)
		CHECK_EQ_I(codec_test_try(t->codec, t->params, t->in, t->in_len,
					  t->n - 1),
			   -ENOSPC);
}

/* Decodes to just the plain bytes with exactly the room and with more, whose
 * rest is left alone; with less it says so. */
static inline void codec_test_decodes(const struct codec_test *t)
{
	codec_test_rooms(t, true);
}

/* The same, but the rest of the room may be written to: a library's fast copies
 * run ahead. */
static inline void codec_test_decodes_spilling(const struct codec_test *t)
{
	codec_test_rooms(t, false);
}

/* ---- damage -------------------------------------------------------------- */

/* What may come of damaged bytes: several, joined by |. */
enum codec_test_outcome {
	CODEC_TEST_REFUSED = 1, /* -EBADMSG */
	CODEC_TEST_NO_ROOM = 2, /* -ENOSPC */
	CODEC_TEST_SAME = 4,    /* all of the plain bytes */
	CODEC_TEST_PREFIX = 8,  /* as many of them as there are bytes */
	CODEC_TEST_FEWER = 16,  /* fewer bytes than there were */
	CODEC_TEST_BYTES = 32,  /* any bytes */
	CODEC_TEST_ANY = 63     /* no harm */
};

/* These bytes, instead of the stored ones and in the same room, come to one of
 * the outcomes `allowed`; `what` and `at` name the damage. */
static inline void codec_test_damaged(const struct codec_test *t,
				      const void *in, size_t in_len,
				      unsigned allowed, const char *what,
				      size_t at)
{
	unsigned char *out = codec_test_filled(0x5a, t->n);
	size_t len = 0;
	unsigned is;
	int r = codec_test_decode(t->codec, t->params, in, in_len, out, t->n,
				  &len);

	if (r == -EBADMSG) {
		is = CODEC_TEST_REFUSED;
	} else if (r == -ENOSPC) {
		is = CODEC_TEST_NO_ROOM;
	} else {
		is = CODEC_TEST_BYTES;
		if (len < t->n)
			is |= CODEC_TEST_FEWER;
		if (!len || !memcmp(out, t->plain, len))
			is |= CODEC_TEST_PREFIX;
		if (is & CODEC_TEST_PREFIX && len == t->n)
			is |= CODEC_TEST_SAME;
	}
	if (!(is & allowed))
		test_fail(__FILE__, __LINE__,
			  "%s, %s %zu: returned %d, %zu bytes of %zu (%#x), "
			  "allowed is %#x",
			  t->codec->name, what, at, r, len, t->n, is, allowed);
	free(out);
}

/* Every truncation to less than `needed` bytes. */
static inline void codec_test_cuts(const struct codec_test *t, size_t needed,
				   unsigned allowed)
{
	for (size_t n = 0; n < needed; n++)
		codec_test_damaged(t, t->in, n, allowed, "cut to", n);
}

/* Every bit flipped. */
static inline void codec_test_flips(const struct codec_test *t,
				    unsigned allowed)
{
	unsigned char *bad = codec_test_copy(t->in, t->in_len);

	for (size_t bit = 0; bit < 8 * t->in_len; bit++) {
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
		codec_test_damaged(t, bad, t->in_len, allowed, "flipped bit",
				   bit);
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(bad);
}

/* `more` bytes of `byte` behind the stored ones are noticed. */
static inline void codec_test_tail(const struct codec_test *t, size_t more,
				   int byte)
{
	unsigned char *longer = codec_test_filled(byte, t->in_len + more);

	memcpy(longer, t->in, t->in_len);
	codec_test_damaged(t, longer, t->in_len + more, CODEC_TEST_REFUSED,
			   "bytes more:", more);
	free(longer);
}

/* All of that: every truncation to less than `needed` bytes comes to `cut`,
 * every flipped bit to `flip`, and much more behind the bytes is noticed. */
static inline void codec_test_damage(const struct codec_test *t, size_t needed,
				     unsigned cut, unsigned flip)
{
	codec_test_cuts(t, needed, cut);
	codec_test_flips(t, flip);
	codec_test_tail(t, 300, 0x5a);
}

/* The same for numbers packed bit by bit, whose parameters say how many they
 * are: every cut of what is `needed` is noticed, so is more than a byte behind,
 * and no flipped bit makes a decoder ask for more room. */
static inline void codec_test_packed_damage(const struct codec_test *t,
					    size_t needed)
{
	codec_test_damage(t, needed, CODEC_TEST_REFUSED,
			  CODEC_TEST_REFUSED | CODEC_TEST_BYTES);
	codec_test_tail(t, 2, 0);
}

#endif
