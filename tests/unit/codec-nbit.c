/* SPDX-License-Identifier: BSD-2-Clause */
/* N-bit: what libhdf5 wrote, round trips of random types, damage. */

#include "codec_test.h"

#define CODEC &codec_nbit

/*
 * Golden vectors, each one chunk as HDF5 1.10.8 stored it.  The numbers are
 * codec_test_value's at the bits the type says; long_double holds those of 6, 9
 * and 12 divided by 7 on x86; compound has a string, an array of big-endian
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

TEST(golden_numbers)
{
	static const struct codec_params
		little = {.n = 8, .cd = {8, 0, 45, 1, 2, 0, 9, 3}},
		big = {.n = 8, .cd = {8, 0, 45, 1, 4, 1, 11, 14}},
		wide = {.n = 8, .cd = {8, 0, 3, 1, 16, 0, 80, 0}};
	unsigned char a[45 * 2], b[45 * 4];
	const struct codec_test rows[] = {
		{CODEC, &little, int16, sizeof int16, a, sizeof a},
		{CODEC, &big, uint32_be, sizeof uint32_be, b, sizeof b},
		{CODEC, &wide, long_double, sizeof long_double,
		 long_double_plain, sizeof long_double_plain},
	};

	for (unsigned i = 0; i < 45; i++) {
		codec_test_put(a + 2 * i, codec_test_value(i) << 3, 2, false);
		codec_test_put(b + 4 * i, codec_test_value(i) << 14, 4, true);
	}
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		codec_test_decodes(&rows[i]);
	codec_test_packed_damage(&rows[0], 45 * 9 / 8 + 1);
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
	const struct codec_test t = {CODEC,    &compound_params,
				     compound, sizeof compound,
				     plain,    sizeof plain};

	for (unsigned i = 0; i < 8; i++) {
		unsigned char *to = plain + 21 * i;
		unsigned v = codec_test_value(6 + i);

		to[0] = (unsigned char)('A' + v % 26);
		to[1] = 'B';
		to[2] = 'C';
		codec_test_put(to + 4, (v & 31) << 20, 4, true);
		codec_test_put(to + 8, (v >> 4 & 31) << 20, 4, true);
		codec_test_put(to + 13, v, 2, false);
		codec_test_put(to + 17, v + 1, 2, false);
	}
	codec_test_decodes(&t);
	codec_test_packed_damage(&t, sizeof compound - 1);
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
	uint32_t size = sizes[test_random() % 12];
	uint32_t precision = 1 + (uint32_t)(test_random() % (8 * size));

	push(w, size);
	push(w, test_random() & 1);
	push(w, precision);
	push(w, (uint32_t)(test_random() % (8 * size - precision + 1)));
	return size;
}

static uint32_t push_type(struct writer *w, unsigned depth, bool last);

/* A class, then its type; `last`: nothing follows it. */
static uint32_t push_class(struct writer *w, unsigned depth, bool last)
{
	uint32_t room = CODEC_CD_MAX - w->p.n, size;

	if (room < 20 || depth > 3 || test_random() % 3 == 0) {
		if (test_random() % 4 == 0) {
			push(w, 4);
			size = 1 + (uint32_t)(test_random() % 7);
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
	uint32_t at, size = 0, n = 1 + (uint32_t)(test_random() % 3);

	if (test_random() % 2) {
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
		size += test_random() % 3 ? 0 : (uint32_t)(test_random() % 5);
		push(w, size);
		if (i + 1 < n) { /* what cannot overflow cd[] */
			push(w, 4);
			push(w, 3);
			size += 3;
		} else {
			size += push_class(w, depth + 1, last);
		}
	}
	w->p.cd[at] = size + (uint32_t)(test_random() % 3);
	w->p.cd[at + 1] = n;
	return w->p.cd[at];
}

static void write_bit(struct writer *w, unsigned char *plain, uint64_t bit,
		      uint32_t size, bool big_endian)
{
	uint64_t byte = big_endian ? size - 1 - bit / 8 : bit / 8;

	if (test_random() & 1) {
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
		uint32_t n = 1 + (uint32_t)(test_random() % 40), size;
		unsigned char *plain;
		size_t stored;

		size = push_class(&w, round % 3 ? 0 : 9, true);
		if (w.p.cd[3] == 4)
			continue; /* such a type alone is not packed */
		CHECK(w.p.n <= CODEC_CD_MAX);
		w.p.cd[0] = w.p.n;
		w.p.cd[2] = n;
		plain = codec_test_filled(0, (size_t)n * size);
		w.bits = codec_test_filled(0, (size_t)n * size + 1);
		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ_U(write_type(&w, w.p.cd[3], 4,
					      plain + (size_t)i * size),
				   w.p.n);
		stored = w.at / 8 + (w.at % 8 != 0);
		codec_test_decodes(CODEC_TEST(CODEC, &w.p, w.bits, stored,
					      plain, (size_t)n * size));
		codec_test_decodes(CODEC_TEST(CODEC, &w.p, w.bits, w.at / 8 + 1,
					      plain, (size_t)n * size));
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
	codec_test_decodes(
		CODEC_TEST(CODEC, &string, "any bytes", 9, "any bytes", 9));
	codec_test_decodes(CODEC_TEST(CODEC, &full, "12345", 5, "12345", 5));
	codec_test_decodes(CODEC_TEST(CODEC, &full, NULL, 0, NULL, 0));
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
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = {0, ""};

		CHECK_EQ_I(codec_nbit.check(&rows[i], &err), -EBADMSG);
		CHECK(err.text[0]);
		CHECK_EQ_I(codec_test_try(CODEC, &rows[i], int16, 10, 64),
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
	CHECK_EQ_I(codec_test_try(CODEC, &small, int16, 10, 8), -ENOSPC);
	CHECK_EQ_I(codec_test_try(CODEC, &large, int16, 10, 8), -ENOSPC);
	codec_test_decodes(CODEC_TEST(CODEC, &none, NULL, 0, NULL, 0));
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
