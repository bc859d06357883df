/* SPDX-License-Identifier: BSD-2-Clause */
/* N-bit: what libhdf5 wrote, round trips of random types, damage. */
#include <errno.h>

#include "codec/codec.h"
#include "test.h"

#define CODEC codec_nbit

/*
 * Golden vectors, each one chunk as HDF5 1.10.8 stored it.  The numbers are the
 * values of `golden` at the bits the type says; long_double holds those of 6,
 * 9 and 12 divided by 7 on x86; compound has a string, an array of big-endian
 * numbers and an array of compounds, with padding between.
 */
static const unsigned char int16[] = {
	0x00, 0x00, 0x00, 0x00, 0x70, 0x38, 0x1c, 0x38, 0x1c, 0x0e, 0x0f,
	0xc7, 0xe3, 0xf0, 0x00, 0x00, 0x00, 0xaf, 0x57, 0xab, 0xdf, 0x8f,
	0xc7, 0xe0, 0xac, 0x56, 0x2b, 0x00, 0x00, 0x00, 0x10, 0xb8, 0x5c,
	0x2c, 0xc8, 0x64, 0x32, 0x3d, 0xde, 0xef, 0x70, 0x00, 0x00, 0x01,
	0x1b, 0x8d, 0xc6, 0xd5, 0x8a, 0xc5, 0x60,
};
static const unsigned char uint32_be[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x70, 0x0e, 0x01, 0xc0, 0xe0, 0x1c,
	0x03, 0x80, 0xfc, 0x1f, 0x83, 0xf0, 0x00, 0x00, 0x00, 0x00, 0xaf,
	0x15, 0xe2, 0xbc, 0x7e, 0x0f, 0xc1, 0xf8, 0x0a, 0xc1, 0x58, 0x2b,
	0x00, 0x00, 0x00, 0x00, 0x10, 0xb2, 0x16, 0x42, 0xc3, 0x20, 0x64,
	0x0c, 0x83, 0xdc, 0x7b, 0x8f, 0x70, 0x00, 0x00, 0x00, 0x01, 0x1b,
	0x23, 0x64, 0x6c, 0x56, 0x0a, 0xc1, 0x58,
};
static const unsigned char long_double[] = {
	0x40, 0x01, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
	0x02, 0x90, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const unsigned char long_double_plain[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x40, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90,
	0x02, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const unsigned char compound[] = {
	0x43, 0x42, 0x43, 0xe0, 0x43, 0x81, 0xd4, 0x34, 0x24, 0x3e, 0x04,
	0x38, 0x1d, 0x43, 0x42, 0x43, 0xe0, 0x43, 0x81, 0xd4, 0xc4, 0x24,
	0x3f, 0x8c, 0x7e, 0x40, 0x4c, 0x42, 0x43, 0xf8, 0xc7, 0xe4, 0x04,
	0xc4, 0x24, 0x3f, 0x8c, 0x7e, 0x40, 0x41, 0x42, 0x43, 0x00, 0x00,
	0x00, 0x14, 0x14, 0x24, 0x30, 0x00, 0x00, 0x01, 0x00,
};

static uint64_t rng_state = 88172645463325252u;
static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state >> 11;
}

static unsigned char *zeros(size_t n)
{
	unsigned char *p = calloc(n ? n : 1, 1);

	CHECK(p);
	return p;
}

/* Decode from and to exactly as many bytes as there are, for sanitizers. */
static int decode(const struct codec_params *p, const void *in, size_t in_len,
		  void *out, size_t cap, size_t *len)
{
	unsigned char *stored = zeros(in_len);
	struct error err = {0, ""};
	int r;

	if (in_len)
		memcpy(stored, in, in_len);
	r = CODEC.decode(p, stored, in_len, out, cap, len, &err);
	CHECK_EQ_I(err.code, r);
	CHECK((r == 0) == !err.text[0]);
	free(stored);
	return r;
}

/* Decodes to just these bytes; with a byte less of room it does not. */
static void check_decodes(const struct codec_params *p, const void *in,
			  size_t in_len, const void *plain, size_t n)
{
	unsigned char *out = zeros(n);
	size_t len = n + 1;

	memset(out, 0xee, n);
	CHECK_OK(CODEC.check(p, NULL));
	CHECK_OK(decode(p, in, in_len, out, n, &len));
	CHECK_EQ_U(len, n);
	CHECK_MEM(out, plain, n);
	if (n)
		CHECK_EQ_I(decode(p, in, in_len, out, n - 1, &len), -ENOSPC);
	free(out);
}

/* Each cut is an error, so are two bytes more; no flipped bit does harm. */
static void check_damage(const struct codec_params *p, const unsigned char *in,
			 size_t in_len, size_t needed, size_t out_len)
{
	unsigned char *out = zeros(out_len), *more = zeros(in_len + 2);
	size_t len;
	int r;

	for (size_t n = 0; n < needed; n++)
		CHECK_EQ_I(decode(p, in, n, out, out_len, &len), -EBADMSG);
	memcpy(more, in, in_len);
	CHECK_EQ_I(decode(p, more, in_len + 2, out, out_len, &len), -EBADMSG);
	for (size_t bit = 0; bit < 8 * in_len; bit++) {
		more[bit / 8] ^= (unsigned char)(1u << bit % 8);
		r = decode(p, more, in_len, out, out_len, &len);
		CHECK(r == 0 || r == -EBADMSG);
		more[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(more);
	free(out);
}

static unsigned golden(unsigned i)
{
	unsigned k = i / 3;

	return k % 4 ? 7 * k * k % 300 : 0;
}

static void put(unsigned char *to, uint64_t v, unsigned size, bool big_endian)
{
	for (unsigned i = 0; i < size; i++)
		to[big_endian ? size - 1 - i : i] = (unsigned char)(v >> 8 * i);
}

TEST(golden_numbers)
{
	static const struct codec_params
		little = {.n = 8, .cd = {8, 0, 45, 1, 2, 0, 9, 3}},
		big = {.n = 8, .cd = {8, 0, 45, 1, 4, 1, 11, 14}},
		wide = {.n = 8, .cd = {8, 0, 3, 1, 16, 0, 80, 0}};
	unsigned char a[45 * 2], b[45 * 4];

	for (unsigned i = 0; i < 45; i++) {
		put(a + 2 * i, golden(i) << 3, 2, false);
		put(b + 4 * i, golden(i) << 14, 4, true);
	}
	check_decodes(&little, int16, sizeof int16, a, sizeof a);
	check_decodes(&big, uint32_be, sizeof uint32_be, b, sizeof b);
	check_decodes(&wide, long_double, sizeof long_double, long_double_plain,
		      sizeof long_double_plain);
	check_damage(&little, int16, sizeof int16, 45 * 9 / 8 + 1, sizeof a);
}

static const struct codec_params compound_params = {
	.n = 29,
	.cd = {29, 0, 8, 3, 21, 3,        /* compound of 21 bytes */
	       0,  4, 3,                  /* string */
	       4,  2, 8, 1, 4,  1, 5, 20, /* two numbers */
	       12, 2, 8, 3, 4,  1, 1, 1,  2, 0, 9, 0}, /* two compounds */
};

TEST(golden_compound)
{
	unsigned char plain[8 * 21] = {0};

	for (unsigned i = 0; i < 8; i++) {
		unsigned char *to = plain + 21 * i;
		unsigned v = golden(6 + i);

		to[0] = (unsigned char)('A' + v % 26);
		to[1] = 'B';
		to[2] = 'C';
		put(to + 4, (v & 31) << 20, 4, true);
		put(to + 8, (v >> 4 & 31) << 20, 4, true);
		put(to + 13, v, 2, false);
		put(to + 17, v + 1, 2, false);
	}
	check_decodes(&compound_params, compound, sizeof compound, plain,
		      sizeof plain);
	check_damage(&compound_params, compound, sizeof compound,
		     sizeof compound - 1, sizeof plain);
}

/* A description of a random type, and elements of it bit by bit. */
struct writer {
	struct codec_params p;
	unsigned char *bits;
	uint64_t at; /* the next bit */
};

static void push(struct writer *w, uint32_t v)
{
	w->p.cd[w->p.n++] = v;
}

static uint32_t push_atomic(struct writer *w)
{
	static const uint32_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 3, 5, 16, 37};
	uint32_t size = sizes[rng() % 12];
	uint32_t precision = 1 + (uint32_t)(rng() % (8 * size));

	push(w, size);
	push(w, rng() & 1);
	push(w, precision);
	push(w, (uint32_t)(rng() % (8 * size - precision + 1)));
	return size;
}

static uint32_t push_type(struct writer *w, unsigned depth, bool last);

/* A class, then its type; `last`: nothing follows it. */
static uint32_t push_class(struct writer *w, unsigned depth, bool last)
{
	uint32_t room = CODEC_CD_MAX - w->p.n, size;

	if (room < 20 || depth > 3 || rng() % 3 == 0) {
		if (rng() % 4 == 0) {
			push(w, 4);
			size = 1 + (uint32_t)(rng() % 7);
			push(w, size);
			return size;
		}
		push(w, 1);
		return push_atomic(w);
	}
	return push_type(w, depth, last);
}

static uint32_t push_type(struct writer *w, unsigned depth, bool last)
{
	uint32_t at, size = 0, n = 1 + (uint32_t)(rng() % 3);

	if (rng() % 2) {
		push(w, 2);
		at = w->p.n++;
		if (last) {
			size = n * push_class(w, depth + 1, true);
		} else {
			push(w, 1);
			size = n * push_atomic(w);
		}
		w->p.cd[at] = size;
		return size;
	}
	push(w, 3);
	at = w->p.n;
	w->p.n += 2;
	if (depth)
		n = 1;
	for (uint32_t i = 0; i < n; i++) {
		size += rng() % 3 ? 0 : (uint32_t)(rng() % 5);
		push(w, size);
		if (i + 1 < n) { /* what cannot overflow cd[] */
			push(w, 4);
			push(w, 3);
			size += 3;
		} else {
			size += push_class(w, depth + 1, last);
		}
	}
	w->p.cd[at] = size + (uint32_t)(rng() % 3);
	w->p.cd[at + 1] = n;
	return w->p.cd[at];
}

static void write_bit(struct writer *w, unsigned char *plain, uint64_t bit,
		      uint32_t size, bool big_endian)
{
	uint64_t byte = big_endian ? size - 1 - bit / 8 : bit / 8;

	if (rng() & 1) {
		plain[byte] |= (unsigned char)(1u << bit % 8);
		w->bits[w->at / 8] |= (unsigned char)(128u >> w->at % 8);
	}
	w->at++;
}

static void write_bytes(struct writer *w, unsigned char *plain, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t bit = 8; bit--;)
			write_bit(w, plain + i, bit, 1, false);
}

/* One element of the type at cd[at]; returns where the description ends. */
static uint32_t write_type(struct writer *w, uint32_t class, uint32_t at,
			   unsigned char *plain)
{
	const uint32_t *cd = w->p.cd + at;
	uint32_t size = cd[0], i;

	if (class == 1) {
		for (uint64_t bit = cd[3] + cd[2]; bit-- > cd[3];)
			write_bit(w, plain, bit, size, cd[1]);
		return at + 4;
	}
	if (class == 4) {
		write_bytes(w, plain, size);
		return at + 1;
	}
	if (class == 2 && cd[1] == 4) {
		write_bytes(w, plain, size);
		return at + 3;
	}
	if (class == 2) {
		uint32_t end = 0;

		for (i = 0; i < size; i += cd[2])
			end = write_type(w, cd[1], at + 2, plain + i);
		return end;
	}
	at += 2;
	for (i = 0; i < cd[1]; i++)
		at = write_type(w, w->p.cd[at + 1], at + 2,
				plain + w->p.cd[at]);
	return at;
}

TEST(round_trips)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct writer w = {.p = {.n = 3}};
		uint32_t n = 1 + (uint32_t)(rng() % 40), size;
		unsigned char *plain;
		size_t stored;

		size = push_class(&w, round % 3 ? 0 : 9, true);
		if (w.p.cd[3] == 4)
			continue; /* such a type alone is not packed */
		CHECK(w.p.n <= CODEC_CD_MAX);
		w.p.cd[0] = w.p.n;
		w.p.cd[2] = n;
		plain = zeros((size_t)n * size);
		w.bits = zeros((size_t)n * size + 1);
		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ_U(write_type(&w, w.p.cd[3], 4,
					      plain + (size_t)i * size),
				   w.p.n);
		stored = w.at / 8 + (w.at % 8 != 0);
		check_decodes(&w.p, w.bits, stored, plain, (size_t)n * size);
		check_decodes(&w.p, w.bits, w.at / 8 + 1, plain,
			      (size_t)n * size);
		free(plain);
		free(w.bits);
	}
}

TEST(identity)
{
	static const struct codec_params
		string = {.n = 3, .cd = {3, 1, 5}},
		full = {.n = 8, .cd = {8, 1, 5, 1, 1, 0, 8, 0}},
		part = {.n = 8, .cd = {8, 0, 5, 1, 1, 0, 7, 0}};

	CHECK(codec_nbit.is_identity(&string));
	CHECK(codec_nbit.is_identity(&full));
	CHECK(!codec_nbit.is_identity(&part));
	check_decodes(&string, "any bytes", 9, "any bytes", 9);
	check_decodes(&full, "12345", 5, "12345", 5);
	check_decodes(&full, NULL, 0, NULL, 0);
}

TEST(parameters)
{
	static const struct codec_params rows[] = {
		{.n = 0},
		{.n = 1, .cd = {1}},
		{.n = 2, .cd = {2, 0}},
		{.n = 4, .cd = {4, 0, 5, 1}},
		{.n = 8, .cd = {7, 0, 5, 1, 2, 0, 9, 0}},
		{.n = 7, .cd = {7, 0, 5, 1, 2, 0, 9}},
		{.n = 9, .cd = {9, 0, 5, 1, 2, 0, 9, 0, 0}},
		{.n = 8, .cd = {8, 0, 5, 1, 0, 0, 0, 0}},
		{.n = 8, .cd = {8, 0, 5, 1, 2, 0, 0, 0}},
		{.n = 8, .cd = {8, 0, 5, 1, 2, 2, 9, 0}},
		{.n = 8, .cd = {8, 0, 5, 1, 2, 0, 17, 0}},
		{.n = 8, .cd = {8, 0, 5, 1, 2, 0, 9, 8}},
		{.n = 8, .cd = {8, 0, 5, 1, 2, 0, 9, 0xfffffff8}},
		{.n = 8, .cd = {8, 0, 5, 0, 2, 0, 9, 0}},
		{.n = 8, .cd = {8, 0, 5, 5, 2, 0, 9, 0}},
		/* arrays: a part of an element, of nothing, too short */
		{.n = 10, .cd = {10, 0, 5, 2, 5, 1, 2, 0, 9, 0}},
		{.n = 10, .cd = {10, 0, 5, 2, 2, 1, 0, 0, 9, 0}},
		{.n = 10, .cd = {10, 0, 5, 2, 1, 1, 2, 0, 9, 0}},
		{.n = 6, .cd = {6, 0, 5, 2, 5, 4}},
		{.n = 6, .cd = {6, 0, 5, 2, 5, 2}},
		/* compounds: members outside, too large together, missing */
		{.n = 9, .cd = {9, 0, 5, 3, 4, 1, 5, 4, 1}},
		{.n = 9, .cd = {9, 0, 5, 3, 4, 1, 3, 4, 2}},
		{.n = 9, .cd = {9, 0, 5, 3, 4, 1, 0xffffffff, 4, 2}},
		{.n = 9, .cd = {9, 0, 5, 3, 4, 1, 0, 4, 0}},
		{.n = 12, .cd = {12, 0, 5, 3, 4, 2, 0, 4, 3, 1, 4, 2}},
		{.n = 9, .cd = {9, 0, 5, 3, 4, 0xffffffff, 0, 4, 1}},
		/* a member that libhdf5 did not store: after an array's */
		{.n = 16,
		 .cd = {16, 0, 5, 3, 4, 2, 0, 2, 2, 2, 2, 4, 1, 2, 4, 2}},
	};
	unsigned char out[64];
	size_t len;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = {0, ""};

		CHECK_EQ_I(codec_nbit.check(&rows[i], &err), -EBADMSG);
		CHECK(err.text[0]);
		CHECK_EQ_I(decode(&rows[i], int16, 10, out, sizeof out, &len),
			   -EBADMSG);
	}
}

/* As many elements as 32 bits can say, of almost nothing or of very much. */
TEST(large_counts)
{
	static const struct codec_params
		small = {.n = 8, .cd = {8, 0, UINT32_MAX, 1, 1, 0, 1, 0}},
		large = {.n = 8,
			 .cd = {8, 0, UINT32_MAX, 1, UINT32_MAX, 0, 9, 0}},
		none = {.n = 8, .cd = {8, 0, 0, 1, 4, 0, 9, 0}};
	unsigned char out[8];
	size_t len;

	CHECK_EQ_I(decode(&small, int16, 10, out, 8, &len), -ENOSPC);
	CHECK_EQ_I(decode(&large, int16, 10, out, 8, &len), -ENOSPC);
	CHECK_OK(decode(&none, NULL, 0, out, 8, &len));
	CHECK_EQ_U(len, 0);
}

int main(void)
{
	RUN(golden_numbers);
	RUN(golden_compound);
	RUN(round_trips);
	RUN(identity);
	RUN(parameters);
	RUN(large_counts);
	return test_done();
}
