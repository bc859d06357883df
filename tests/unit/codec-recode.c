/* SPDX-License-Identifier: BSD-2-Clause */
/* Recoding: every conversion against H5Tconvert, fields and swaps by hand. */
#include <float.h>
#include <hdf5.h>
#include <math.h>

#include "codec/recode.h"
#include "test.h"

#define HALVES 65536 /* all numbers of 16 bits */
#define SPECIALS 256

static const char *const names[] = {
	"none", "i8",  "i16", "i32", "i64", "u8",
	"u16",  "u32", "u64", "f16", "f32", "f64",
};
static const unsigned widths[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
static hid_t little[12], big[12];
static unsigned seed = 1;

static bool is_float(unsigned t)
{
	return t >= RECODE_F16;
}

static void make_types(void)
{
	const hid_t le[] = {0,
			    H5T_STD_I8LE,
			    H5T_STD_I16LE,
			    H5T_STD_I32LE,
			    H5T_STD_I64LE,
			    H5T_STD_U8LE,
			    H5T_STD_U16LE,
			    H5T_STD_U32LE,
			    H5T_STD_U64LE,
			    0,
			    H5T_IEEE_F32LE,
			    H5T_IEEE_F64LE};

	for (unsigned t = RECODE_I8; t <= RECODE_F64; t++) {
		little[t] = H5Tcopy(t == RECODE_F16 ? H5T_IEEE_F32LE : le[t]);
		if (t == RECODE_F16) {
			CHECK(H5Tset_fields(little[t], 15, 10, 5, 0, 10) >= 0);
			CHECK(H5Tset_size(little[t], 2) >= 0);
			CHECK(H5Tset_ebias(little[t], 15) >= 0);
		}
		big[t] = H5Tcopy(little[t]);
		if (widths[t] > 1)
			CHECK(H5Tset_order(big[t], H5T_ORDER_BE) >= 0);
	}
}

static uint64_t random_bits(void)
{
	uint64_t x = 0;

	for (unsigned i = 0; i < 5; i++)
		x = x << 15 ^ (uint64_t)rand_r(&seed);
	return x;
}

/* ---- numbers to convert -------------------------------------------------- */

static void put_float(unsigned char *p, unsigned t, double d)
{
	float f = (float)d;

	if (t == RECODE_F32)
		memcpy(p, &f, sizeof f);
	else
		memcpy(p, &d, sizeof d);
}

/* Floats around `d`: the neighbours, and halfway to those of smaller types. */
static size_t around(unsigned char *p, unsigned t, double d)
{
	static const double steps[] = {0,        0x1p-11,  -0x1p-11, 0x1p-12,
				       -0x1p-12, 0x1p-24,  -0x1p-24, 0x1p-25,
				       -0x1p-25, 0x3p-12,  0x3p-25,  -0x1p-53,
				       0x1p-52,  0x1.8p-1, 0x1.8p-2};
	size_t n = 0;

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
		for (int sign = -1; sign <= 1; sign += 2)
			put_float(p + widths[t] * n++, t,
				  sign * (d + d * steps[i]));
	return n;
}

static size_t float_specials(unsigned char *p, unsigned t)
{
	static const double at[] = {1,
				    127.5,
				    128,
				    255,
				    256,
				    32768,
				    65504,
				    65520,
				    65536,
				    100000,
				    0x1p31,
				    0x1p32,
				    0x1p53,
				    0x1p63,
				    0x1p64,
				    0x1p-14,
				    0x1p-15,
				    0x1p-23,
				    0x1p-24,
				    0x1p-25,
				    0x1p-26,
				    0x1p-126,
				    0x1p-149,
				    0x1p-150,
				    0x1p-151,
				    FLT_MAX,
				    0x1.ffffffp127,
				    0x1.fffffefp127,
				    0x1p128,
				    DBL_MIN,
				    0x1p-1074,
				    DBL_MAX,
				    2047.5,
				    2048.5};
	static const uint64_t f64[] = {0x7ff0000000000001, 0xfff8000000000000,
				       0x7fffffffffffffff, 0x7ff0000020000000,
				       0x000fffffffffffff, 0x8008000000000000};
	static const uint32_t f32[] = {0x7f800001, 0xffc00000, 0x7fffffff,
				       0x7f802000, 0x007fffff, 0x80400000};
	size_t n = 0;

	for (unsigned i = 0; i < sizeof at / sizeof *at; i++)
		n += around(p + widths[t] * n, t, at[i]);
	put_float(p + widths[t] * n++, t, INFINITY);
	put_float(p + widths[t] * n++, t, -INFINITY);
	put_float(p + widths[t] * n++, t, 0.0);
	put_float(p + widths[t] * n++, t, -0.0);
	for (unsigned i = 0; i < 6; i++)
		memcpy(p + widths[t] * n++,
		       t == RECODE_F32 ? (const void *)&f32[i] : &f64[i],
		       widths[t]);
	return n;
}

/* Powers of two, what is next to them and halfway between them. */
static size_t integer_specials(unsigned char *p, unsigned t)
{
	size_t n = 0;

	for (unsigned bit = 0; bit < 8 * widths[t]; bit++)
		for (int64_t by = -2; by <= 2; by++) {
			uint64_t x = (UINT64_C(1) << bit) + (uint64_t)by;
			uint64_t tie = (UINT64_C(1) << bit) +
				       (UINT64_C(1) << bit >> 11) +
				       (uint64_t)by;
			uint64_t tie24 = (UINT64_C(1) << bit) +
					 (UINT64_C(3) << bit >> 25) +
					 (uint64_t)by;
			uint64_t minus = -x;

			memcpy(p + widths[t] * n++, &x, widths[t]);
			memcpy(p + widths[t] * n++, &tie, widths[t]);
			memcpy(p + widths[t] * n++, &tie24, widths[t]);
			memcpy(p + widths[t] * n++, &minus, widths[t]);
		}
	return n;
}

/* Specials, then random patterns, some of them small numbers. */
static size_t make_numbers(unsigned t, unsigned char **out)
{
	size_t random = test_full() ? 100000 : 5000, n = 0;
	unsigned char *p = calloc(HALVES + random + 8192, 8);

	CHECK(p);
	if (t == RECODE_F16)
		for (unsigned h = 0; h < HALVES; h++, n++)
			memcpy(p + 2 * n, &(uint16_t){(uint16_t)h}, 2);
	else if (is_float(t))
		n = float_specials(p, t);
	else
		n = integer_specials(p, t);
	CHECK(n <= HALVES + 8192);
	for (random += n; n < random; n++) {
		uint64_t x = random_bits();

		memcpy(p + widths[t] * n, &x, widths[t]);
		if ((t == RECODE_F32 || t == RECODE_F64) && n % 2)
			put_float(p + widths[t] * n, t,
				  (double)(int64_t)x /
					  (double)(UINT64_C(1) << x % 63));
	}
	*out = p;
	return n;
}

/* ---- conversions --------------------------------------------------------- */

static void reverse_all(unsigned char *p, size_t n, unsigned width)
{
	for (; n; n--, p += width)
		for (unsigned i = 0; i < width / 2; i++) {
			unsigned char c = p[i];

			p[i] = p[width - 1 - i];
			p[width - 1 - i] = c;
		}
}

static struct recode conversion(unsigned of, unsigned into, bool swapped)
{
	struct recode r;

	memset(&r, 0, sizeof r);
	r.from = r.width = widths[of];
	r.to = widths[into];
	r.of = of;
	r.into = into;
	if (swapped) {
		r.nswaps = 1;
		r.swap[0] = (struct recode_swap){0, widths[of], 1};
	}
	return r;
}

/* Of 16 bits libhdf5 1.10 makes 64 by way of a buffer of 40, and reads beyond
 * it for negative numbers: 32 bits say what it should be. */
static void convert_long_way(hid_t of, const unsigned char *half,
			     unsigned char *out)
{
	unsigned char v[4];
	int32_t small;
	int64_t large;

	memcpy(v, half, 2);
	CHECK(H5Tconvert(of, little[RECODE_I32], 1, v, NULL, H5P_DEFAULT) >= 0);
	memcpy(&small, v, sizeof small);
	large = small > INT32_MIN && small < INT32_MAX ? small
		: small < 0                            ? INT64_MIN
						       : INT64_MAX;
	memcpy(out, &large, sizeof large);
}

/* What the library makes of each number, converted by itself: it has a state
 * that one number leaves to those behind it. */
static void convert_by_library(unsigned of, unsigned into, bool swapped,
			       const unsigned char *in, unsigned char *out,
			       size_t n)
{
	hid_t type = swapped ? big[of] : little[of];
	unsigned from = widths[of], to = widths[into];

	for (size_t i = 0; i < n; i++, in += from, out += to) {
		unsigned char v[8];

		if (of == RECODE_F16 && into == RECODE_I64) {
			convert_long_way(type, in, out);
			continue;
		}
		memcpy(v, in, from);
		CHECK(H5Tconvert(type, little[into], 1, v, NULL, H5P_DEFAULT) >=
		      0);
		memcpy(out, v, to);
	}
}

static void check_pair(unsigned of, unsigned into, bool swapped,
		       const unsigned char *numbers, size_t n)
{
	struct recode r = conversion(of, into, swapped);
	unsigned from = widths[of], to = widths[into];
	unsigned char *in = malloc(n * from), *got = malloc(n * to);
	unsigned char *want = malloc(n * to);

	CHECK(in && got && want);
	CHECK(recode_is_valid(&r));
	CHECK(!recode_is_identity(&r));
	memcpy(in, numbers, n * from);
	if (swapped)
		reverse_all(in, n, from);
	convert_by_library(of, into, swapped, in, want, n);
	recode_run(&r, in, got, n);
	for (size_t i = 0; i < n; i++)
		if (memcmp(got + i * to, want + i * to, to)) {
			uint64_t v = 0, g = 0, w = 0;

			memcpy(&v, numbers + i * from, from);
			memcpy(&g, got + i * to, to);
			memcpy(&w, want + i * to, to);
			test_fail(__FILE__, __LINE__,
				  "%s%s -> %s: 0x%" PRIx64 " gives 0x%" PRIx64
				  ", the library 0x%" PRIx64,
				  names[of], swapped ? " swapped" : "",
				  names[into], v, g, w);
		}
	if (from == to) {
		recode_run(&r, in, in, n);
		CHECK_MEM(in, want, n * to);
	}
	free(in);
	free(got);
	free(want);
}

static unsigned library_version(void)
{
	unsigned major, minor, release;

	CHECK(H5get_libversion(&major, &minor, &release) >= 0);
	return major << 16 | minor << 8 | release;
}

/* From 1.14.4 on it casts 16-bit floats where the compiler has them. */
static bool library_knows_half(void)
{
	return library_version() >= 0x010e04;
}

/* 1.14 makes -128 of -0.00006 in the other byte order, and the like. */
static bool library_rounds_small_numbers(void)
{
	return library_version() < 0x010c00;
}

TEST(every_pair_is_what_the_library_makes_of_it)
{
	bool half = !library_knows_half();

	for (unsigned of = RECODE_I8; of <= RECODE_F64; of++) {
		unsigned char *p;
		size_t n = make_numbers(of, &p);

		for (unsigned into = RECODE_I8; into <= RECODE_F64; into++) {
			if (of == into ||
			    (!half && (of == RECODE_F16 || into == RECODE_F16)))
				continue;
			check_pair(of, into, false, p, n);
			if (widths[of] > 1 &&
			    (of < RECODE_F16 || library_rounds_small_numbers()))
				check_pair(of, into, true, p, n);
		}
		free(p);
	}
}

/* ---- fields and swaps ---------------------------------------------------- */

/* Slowly, one byte after the other. */
static void naive(const struct recode *r, const unsigned char *in,
		  unsigned char *out, size_t n)
{
	for (size_t e = 0; e < n; e++) {
		unsigned char *p = out + e * r->width;

		memcpy(p, in + e * r->from + r->offset, r->width);
		for (unsigned i = 0; i < r->nswaps; i++)
			reverse_all(p + r->swap[i].offset, r->swap[i].count,
				    r->swap[i].width);
	}
}

static struct recode random_recode(void)
{
	struct recode r;
	uint32_t at = 0, gap;

	memset(&r, 0, sizeof r);
	r.width = 1 + (uint32_t)rand_r(&seed) % 300;
	if (rand_r(&seed) % 2)
		r.width = 1u << rand_r(&seed) % 5;
	r.to = r.width;
	r.offset = rand_r(&seed) % 2 ? 0 : (uint32_t)rand_r(&seed) % 20;
	r.from = r.offset + r.width +
		 (rand_r(&seed) % 2 ? 0 : (uint32_t)rand_r(&seed) % 20);
	while (r.nswaps < RECODE_SWAPS_MAX && rand_r(&seed) % 8) {
		struct recode_swap *s = &r.swap[r.nswaps];

		gap = rand_r(&seed) % 2 ? 0 : (uint32_t)rand_r(&seed) % 9;
		s->offset = at + gap;
		s->width = 2u << rand_r(&seed) % 4;
		s->count = 1 + (uint32_t)rand_r(&seed) % 3;
		at = s->offset + s->width * s->count;
		if (at > r.width) {
			memset(s, 0, sizeof *s);
			break;
		}
		r.nswaps++;
	}
	return r;
}

TEST(fields_are_taken_out_and_swapped)
{
	for (unsigned round = 0; round < test_rounds(3000); round++) {
		struct recode r = random_recode();
		size_t n = (size_t)rand_r(&seed) % 300;
		unsigned char *in = malloc(n * r.from + 1);
		unsigned char *got = malloc(n * r.to + 1);
		unsigned char *want = malloc(n * r.to + 1);

		CHECK(in && got && want);
		CHECK(recode_is_valid(&r));
		CHECK(recode_is_identity(&r) ==
		      (!r.nswaps && r.from == r.width));
		for (size_t i = 0; i < n * r.from; i++)
			in[i] = (unsigned char)rand_r(&seed);
		naive(&r, in, want, n);
		got[n * r.to] = 0x5a;
		recode_run(&r, in, got, n);
		CHECK_MEM(got, want, n * r.to);
		CHECK_EQ_U(got[n * r.to], 0x5a);
		if (r.from == r.to) {
			recode_run(&r, in, in, n);
			CHECK_MEM(in, want, n * r.to);
		}
		free(in);
		free(got);
		free(want);
	}
}

/* Pieces along axes, the innermost first. */
static struct recode random_pieces(void)
{
	struct recode r;
	uint32_t piece = 1 + (uint32_t)rand_r(&seed) % 20;

	memset(&r, 0, sizeof r);
	if (rand_r(&seed) % 2)
		piece = 1u << rand_r(&seed) % 5;
	r.offset = (uint32_t)rand_r(&seed) % 9;
	r.width = piece;
	r.from = r.offset + piece + 1;
	r.naxes = 1 + (uint32_t)rand_r(&seed) % RECODE_AXES_MAX;
	for (unsigned i = 0; i < r.naxes; i++) {
		struct recode_axis *a = &r.axis[i];

		a->count = 1 + (uint32_t)rand_r(&seed) % 4;
		a->stride = piece + (uint32_t)rand_r(&seed) % 70;
		r.from += a->stride * (a->count - 1);
		r.width *= a->count;
	}
	r.from += r.width < r.from ? 0 : r.width;
	r.to = r.width;
	if (piece % 2 == 0 && rand_r(&seed) % 2) {
		r.nswaps = 1;
		r.swap[0] = (struct recode_swap){0, 2, r.width / 2};
	}
	return r;
}

static unsigned char *naive_pieces(const struct recode *r, unsigned axis,
				   const unsigned char *in, uint32_t piece,
				   unsigned char *out)
{
	if (!axis) {
		memcpy(out, in, piece);
		return out + piece;
	}
	for (uint32_t i = 0; i < r->axis[axis - 1].count; i++)
		out = naive_pieces(r, axis - 1,
				   in + i * r->axis[axis - 1].stride, piece,
				   out);
	return out;
}

TEST(pieces_are_taken_along_axes)
{
	for (unsigned round = 0; round < test_rounds(3000); round++) {
		struct recode r = random_pieces();
		size_t n = (size_t)rand_r(&seed) % 40;
		unsigned char *in = malloc(n * r.from + 1), *to;
		unsigned char *got = malloc(n * r.to + 1);
		unsigned char *want = malloc(n * r.to + 1);
		uint32_t piece = r.width;

		CHECK(in && got && want && recode_is_valid(&r));
		CHECK(!recode_is_identity(&r));
		for (unsigned i = 0; i < r.naxes; i++)
			piece /= r.axis[i].count;
		for (size_t i = 0; i < n * r.from; i++)
			in[i] = (unsigned char)rand_r(&seed);
		to = want;
		for (size_t i = 0; i < n; i++)
			to = naive_pieces(&r, r.naxes,
					  in + i * r.from + r.offset, piece,
					  to);
		if (r.nswaps)
			reverse_all(want, (uint32_t)(n * r.width / 2), 2);
		recode_run(&r, in, got, n);
		CHECK_MEM(got, want, n * r.to);
		free(in);
		free(got);
		free(want);
	}
}

TEST(strings_are_cleaned)
{
	/* 3 bytes | two strings, ended by NULs | one padded with spaces */
	struct recode r = {.from = 18,
			   .to = 15,
			   .offset = 3,
			   .width = 15,
			   .nswaps = 2,
			   .swap = {{0, 5 | RECODE_AFTER_NUL, 2},
				    {10, 5 | RECODE_SPACES, 1}}};
	static const char in[] = "...ab\0cdabcde a b "
				 "...a\0xxxy\0bc  \0   "
				 "...     \0\0\0\0\0abcde"
				 "   ab    cd\0x    \0";
	static const char want[] = "ab\0\0\0abcde a b\0"
				   "a\0\0\0\0y\0\0\0\0 \0\0\0\0"
				   "     \0\0\0\0\0abcde"
				   "ab    cd\0\0    \0";
	char got[sizeof want - 1];

	CHECK_EQ_U(sizeof in - 1, 4 * 18);
	CHECK_EQ_U(sizeof want - 1, 4 * 15);
	CHECK(recode_is_valid(&r));
	recode_run(&r, in, got, 4);
	CHECK_MEM(got, want, sizeof got);
	r.swap[1].width++;
	CHECK(!recode_is_valid(&r));
	r.swap[1].width = UINT32_MAX;
	CHECK(!recode_is_valid(&r));
	r.swap[1].width = RECODE_SPACES; /* nothing to clean */
	CHECK(!recode_is_valid(&r));
}

TEST(pieces_that_stick_out_are_refused)
{
	struct recode r = {.from = 100,
			   .to = 24,
			   .offset = 6,
			   .width = 24,
			   .naxes = 2,
			   .axis = {{2, 10}, {3, 38}}};

	CHECK(recode_is_valid(&r)); /* 6 + 10 + 2 * 38 + 4 = 96 */
	r.axis[1].stride = 40;
	CHECK(recode_is_valid(&r));
	r.axis[1].stride = 41;
	CHECK(!recode_is_valid(&r));
	r.axis[1].stride = UINT32_MAX;
	CHECK(!recode_is_valid(&r));
	r.axis[1] = (struct recode_axis){UINT32_MAX, UINT32_MAX};
	CHECK(!recode_is_valid(&r));
	r.axis[1] = (struct recode_axis){5, 1}; /* 24 is not 10 pieces */
	CHECK(!recode_is_valid(&r));
	r.axis[1] = (struct recode_axis){0, 1};
	CHECK(!recode_is_valid(&r));
	r.axis[1] = (struct recode_axis){3, 38};
	r.naxes = RECODE_AXES_MAX + 1;
	CHECK(!recode_is_valid(&r));
	r = (struct recode){.from = 24,
			    .to = 24,
			    .width = 24,
			    .naxes = 1,
			    .axis = {{2, 12}}}; /* would be done in place */
	CHECK(!recode_is_valid(&r));
}

/* >i2 at byte 3 of 8 becomes a double; in place, as both are 8 bytes. */
TEST(a_field_is_converted)
{
	struct recode r = conversion(RECODE_I16, RECODE_F64, true);
	unsigned char in[700 * 8];
	double got[700];

	r.from = 8;
	r.offset = 3;
	CHECK(recode_is_valid(&r));
	for (int i = 0; i < 700; i++) {
		memset(in + 8 * i, 0xee, 8);
		in[8 * i + 3] = (unsigned char)((i - 350) >> 8);
		in[8 * i + 4] = (unsigned char)(i - 350);
	}
	recode_run(&r, in, got, 700);
	for (int i = 0; i < 700; i++)
		CHECK(got[i] == i - 350);
	recode_run(&r, in, in, 700);
	CHECK_MEM(in, got, sizeof in);
}

TEST(what_cannot_be_is_refused)
{
	struct recode ok = conversion(RECODE_I16, RECODE_F64, true), r;

	CHECK(recode_is_valid(&ok));
#define REFUSED(change)                      \
	do {                                 \
		r = ok;                      \
		change;                      \
		CHECK(!recode_is_valid(&r)); \
	} while (0)
	REFUSED(r.from = 1);
	REFUSED(r.offset = 1);
	REFUSED(r.offset = UINT32_MAX);
	REFUSED(r.width = 0);
	REFUSED(r.width = 4; r.from = 4);
	REFUSED(r.to = 4);
	REFUSED(r.to = 0);
	REFUSED(r.of = RECODE_NONE);
	REFUSED(r.into = RECODE_NONE);
	REFUSED(r.into = RECODE_I16; r.to = 2);
	REFUSED(r.of = 12);
	REFUSED(r.into = UINT32_MAX);
	REFUSED(r.nswaps = RECODE_SWAPS_MAX + 1);
	REFUSED(r.swap[0].width = 1);
	REFUSED(r.swap[0].width = 3);
	REFUSED(r.swap[0].width = 4);
	REFUSED(r.swap[0].count = 0);
	REFUSED(r.swap[0].count = UINT32_MAX);
	REFUSED(r.swap[0].offset = UINT32_MAX);
	memset(&ok, 0, sizeof ok);
	ok.from = ok.to = ok.width = 8;
	CHECK(recode_is_valid(&ok));
	CHECK(recode_is_identity(&ok));
	ok.nswaps = 2;
	ok.swap[0] = (struct recode_swap){0, 2, 2};
	ok.swap[1] = (struct recode_swap){4, 4, 1};
	CHECK(recode_is_valid(&ok));
	REFUSED(r.swap[1].offset = 2); /* twice the same bytes */
	REFUSED(r.to = 4);
	memset(&r, 0, sizeof r);
	CHECK(!recode_is_valid(&r));
}

int main(void)
{
	make_types();
	RUN(every_pair_is_what_the_library_makes_of_it);
	RUN(fields_are_taken_out_and_swapped);
	RUN(pieces_are_taken_along_axes);
	RUN(strings_are_cleaned);
	RUN(pieces_that_stick_out_are_refused);
	RUN(a_field_is_converted);
	RUN(what_cannot_be_is_refused);
	for (unsigned t = RECODE_I8; t <= RECODE_F64; t++) {
		H5Tclose(little[t]);
		H5Tclose(big[t]);
	}
	return test_done();
}
