/* SPDX-License-Identifier: BSD-2-Clause */
/* Convert numbers from one type to another, with the results of H5Tconvert. */
#include "codec/convert.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * A number is converted by way of the widest type of its kind: 11 loops that load (int8_t
 * to int64_t, ...) and 3 x 11 that store, instead of 110 for all pairs.  Nothing is lost
 * on the way: each type converts exactly to the widest of its kind.
 *
 * The results are those of H5Tconvert, which has two ways.  Numbers in the machine's own
 * byte order are converted by C casts behind range checks; numbers of the other order,
 * and all 16-bit floats, by loops over bits.  The two ways differ in corner cases, which
 * are reproduced here, because users compare with what h5py reads ("by bits" below is the
 * second way):
 *
 *	integers of one width     clipped (-1 -> 0u); by bits the bits stay (-1 -> max)
 *	NaN -> integer            the result of the processor's cast; by bits 0
 *	2^31 as float -> int32, 2^63 -> int64, and so on: the same; by bits clipped
 *	NaN -> float              payload kept; by bits all of the mantissa is set
 *	float -> smaller float    to nearest, ties to even, but infinity for anything
 *	                          beyond the largest number; by bits ties go away from
 *	                          zero, nothing is rounded up to infinity, and in a
 *	                          subnormal result a carry out of the mantissa is lost
 *	integer -> 16 bits        65537 to 131071 get the exponent of infinity and keep
 *	                          their mantissa: they are NaN
 *
 * Two corner cases are not reproduced, because an element's result here never depends on
 * anything else. libhdf5 1.10 forgets to reset a flag, so that by bits, after a subnormal
 * number in the same call, 1.9999 -> 16 bits is 1 instead of 2; and it makes int64 of
 * negative 16-bit floats with bytes from behind a buffer.
 */

enum kind { SIGNED, UNSIGNED, FLOATING, KINDS };
union wide {
	int64_t i[CONVERT_MAX];
	uint64_t u[CONVERT_MAX];
	double f[CONVERT_MAX];
};

/* ---- loading ------------------------------------------------------------- */

static double double_of_bits(uint64_t x)
{
	double d;

	memcpy(&d, &x, sizeof d);
	return d;
}
static uint64_t bits_of_double(double d)
{
	uint64_t x;

	memcpy(&x, &d, sizeof x);
	return x;
}

#define MANTISSA ((UINT64_C(1) << 52) - 1)

static double double_of_half(uint16_t h)
{
	uint64_t sign = (uint64_t)(h & 0x8000) << 48, m = h & 0x3ff;
	unsigned e = h >> 10 & 31;

	if (e == 0)
		return sign ? -(double)m / (1 << 24) : (double)m / (1 << 24);
	if (e == 31)
		return double_of_bits(sign | UINT64_C(0x7ff) << 52 |
				      (m ? MANTISSA : 0));
	return double_of_bits(sign | (uint64_t)(e + 1023 - 15) << 52 | m << 42);
}

typedef void load_fn(const void *in, union wide *w, size_t n);
#define LOAD(name, type, member, value)                                        \
	static void load_##name(const void *in, union wide *w, size_t n)       \
	{                                                                      \
		for (size_t i = 0; i < n; i++) {                               \
			type v;                                                \
                                                                               \
			memcpy(&v, (const char *)in + i * sizeof v, sizeof v); \
			w->member[i] = value;                                  \
		}                                                              \
	}
LOAD(i8, int8_t, i, v)
LOAD(i16, int16_t, i, v)
LOAD(i32, int32_t, i, v)
LOAD(i64, int64_t, i, v)
LOAD(u8, uint8_t, u, v)
LOAD(u16, uint16_t, u, v)
LOAD(u32, uint32_t, u, v)
LOAD(u64, uint64_t, u, v)
LOAD(f16, uint16_t, f, double_of_half(v))
LOAD(f32, float, f, (double)v)
LOAD(f64, double, f, v)

/* Set all of a NaN's mantissa, as conversion by bits does. */
static void fill_nans(union wide *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(w->f[i]))
			w->f[i] = double_of_bits(bits_of_double(w->f[i]) |
						 UINT64_C(0x7ff) << 52 |
						 MANTISSA);
}

/* ---- storing ------------------------------------------------------------- */

/* Convert a double to a float of `m` bits of mantissa and `ebits` bits of exponent, by
 * bits. */
static uint64_t narrow(double d, unsigned m, unsigned ebits)
{
	uint64_t x = bits_of_double(d), f = x & MANTISSA;
	uint64_t sign = (x >> 63) << (m + ebits);
	int e = (int)(x >> 52 & 0x7ff), top = (1 << ebits) - 1;
	unsigned cut = 52 - m, shift;

	if (e == 0x7ff)
		return sign | (uint64_t)top << m |
		       (f ? (UINT64_C(1) << m) - 1 : 0);
	e += top / 2 - 1023;
	if (e < -(int)m)
		return sign;
	if (e >= top)
		return sign | (uint64_t)top << m;
	if (e > 0) {
		if (f >> (cut - 1) & 1 &&
		    (f >> cut != MANTISSA >> cut || e < top - 1))
			f += UINT64_C(1) << (cut - 1);
		return sign | (((uint64_t)e << 52) + f) >> cut;
	}
	shift = (unsigned)(1 - e);
	if (shift >= m)
		return sign | 1;
	cut += shift;
	if (f >> (cut - 1) & 1)
		f = (f + (UINT64_C(1) << (cut - 1))) & MANTISSA;
	return sign | UINT64_C(1) << (m - shift) | f >> cut;
}

/* Convert a sign and a magnitude to a 16-bit float, by bits. */
static uint16_t half_of_integer(bool negative, uint64_t mag)
{
	unsigned first, e, cut;
	uint64_t m, rest;

	if (!mag)
		return 0;
	first = 63 - (unsigned)__builtin_clzll(mag);
	e = first + 15;
	m = mag ^ UINT64_C(1) << first;
	if (first > 10) {
		cut = first - 10;
		rest = m & ((UINT64_C(1) << cut) - 1);
		m >>= cut;
		m += rest > UINT64_C(1) << (cut - 1) ||
		     (rest == UINT64_C(1) << (cut - 1) && (m & 1));
		e += m >> 10 != 0;
	} else {
		m <<= 10 - first;
	}
	if (e > 31) {
		e = 31;
		m = 0;
	}
	return (uint16_t)((unsigned)negative << 15 | e << 10 | (m & 0x3ff));
}

/* The way of a conversion, which decides the corner cases. */
enum way { CAST, CAST_F32, BY_BITS };

/*
 * The library casts whatever passes its range check: NaN, and the first power of two that
 * does not fit where the largest number of the type rounds up to it (64-bit integers
 * always, 32-bit integers as a float).  On x86 the results are the following; other
 * processors give the nearest number of the type.
 */
#if defined(__x86_64__) || defined(__i386__)
#define NAN_64 (UINT64_C(1) << 63)
#define OVER_I32 INT32_MIN
#define OVER_I64 INT64_MIN
#define OVER_U 0
#else
#define NAN_64 0
#define OVER_I32 INT32_MAX
#define OVER_I64 INT64_MAX
#define OVER_U UINT64_MAX
#endif

typedef void store_fn(const union wide *w, void *out, size_t n, enum way way);
#define STORE(name, type, from, member, value)                               \
	static void store_##name(const union wide *w, void *out, size_t n,   \
				 enum way way)                               \
	{                                                                    \
		(void)way;                                                   \
		for (size_t i = 0; i < n; i++) {                             \
			from v = w->member[i];                               \
			type to = (type)(value);                             \
                                                                             \
			memcpy((char *)out + i * sizeof to, &to, sizeof to); \
		}                                                            \
	}
#define STORE_S(name, type, value) STORE(s_##name, type, int64_t, i, value)
#define STORE_U(name, type, value) STORE(u_##name, type, uint64_t, u, value)
#define STORE_F(name, type, value) STORE(f_##name, type, double, f, value)

#define S_CLIP(lo, hi) (v < (lo) ? (lo) : v > (hi) ? (hi) : v)
#define S_CLIP_U(hi) (v < 0 ? 0 : (uint64_t)v > (hi) ? (hi) : (uint64_t)v)
STORE_S(i8, int8_t, S_CLIP(INT8_MIN, INT8_MAX))
STORE_S(i16, int16_t, S_CLIP(INT16_MIN, INT16_MAX))
STORE_S(i32, int32_t, S_CLIP(INT32_MIN, INT32_MAX))
STORE_S(i64, int64_t, v)
STORE_S(u8, uint8_t, S_CLIP_U(UINT8_MAX))
STORE_S(u16, uint16_t, S_CLIP_U(UINT16_MAX))
STORE_S(u32, uint32_t, S_CLIP_U(UINT32_MAX))
STORE_S(u64, uint64_t, v < 0 ? 0 : v)
STORE_S(f16, uint16_t,
	half_of_integer(v < 0, v < 0 ? -(uint64_t)v : (uint64_t)v))
STORE_S(f32, float, v)
STORE_S(f64, double, v)

#define U_CLIP(hi) (v > (uint64_t)(hi) ? (uint64_t)(hi) : v)
STORE_U(i8, int8_t, U_CLIP(INT8_MAX))
STORE_U(i16, int16_t, U_CLIP(INT16_MAX))
STORE_U(i32, int32_t, U_CLIP(INT32_MAX))
STORE_U(i64, int64_t, U_CLIP(INT64_MAX))
STORE_U(u8, uint8_t, U_CLIP(UINT8_MAX))
STORE_U(u16, uint16_t, U_CLIP(UINT16_MAX))
STORE_U(u32, uint32_t, U_CLIP(UINT32_MAX))
STORE_U(u64, uint64_t, v)
STORE_U(f16, uint16_t, half_of_integer(false, v))
STORE_U(f32, float, v)
STORE_U(f64, double, v)

/* `over` is the first power of two that does not fit; it is exact as a double. */
#define F_CLIP(type, lo, hi, over, at_over, nan) \
	(isnan(v)           ? (type)(nan)        \
	 : v > (over)       ? (hi)               \
	 : v == (over)      ? (type)(at_over)    \
	 : v < (double)(lo) ? (lo)               \
			    : (type)v)
#define F_CLIP_SMALL(type, lo, hi) F_CLIP(type, lo, hi, (hi) + 1, hi, 0)
STORE_F(i8, int8_t, F_CLIP_SMALL(int8_t, INT8_MIN, INT8_MAX))
STORE_F(i16, int16_t, F_CLIP_SMALL(int16_t, INT16_MIN, INT16_MAX))
STORE_F(u8, uint8_t, F_CLIP_SMALL(uint8_t, 0, UINT8_MAX))
STORE_F(u16, uint16_t, F_CLIP_SMALL(uint16_t, 0, UINT16_MAX))
STORE_F(i32, int32_t,
	F_CLIP(int32_t, INT32_MIN, INT32_MAX, 0x1p31,
	       way == CAST_F32 ? OVER_I32 : INT32_MAX,
	       way == BY_BITS ? 0 : NAN_64 >> 32))
STORE_F(u32, uint32_t,
	F_CLIP(uint32_t, 0, UINT32_MAX, 0x1p32,
	       way == CAST_F32 ? OVER_U : UINT32_MAX, 0))
STORE_F(i64, int64_t,
	F_CLIP(int64_t, INT64_MIN, INT64_MAX, 0x1p63,
	       way == BY_BITS ? INT64_MAX : OVER_I64,
	       way == BY_BITS ? 0 : NAN_64))
STORE_F(u64, uint64_t,
	F_CLIP(uint64_t, 0, UINT64_MAX, 0x1p64,
	       way == BY_BITS ? UINT64_MAX : OVER_U,
	       way == BY_BITS ? 0 : NAN_64))
STORE_F(f16, uint16_t, narrow(v, 10, 5))
STORE_F(f64, double, v)

static float float_by_cast(double v)
{
	return v > (double)FLT_MAX    ? INFINITY
	       : v < -(double)FLT_MAX ? -INFINITY
				      : (float)v;
}
static void store_f_f32(const union wide *w, void *out, size_t n, enum way way)
{
	for (size_t i = 0; i < n; i++) {
		float to;
		uint32_t x;

		if (way == BY_BITS) {
			x = (uint32_t)narrow(w->f[i], 23, 8);
		} else {
			to = float_by_cast(w->f[i]);
			memcpy(&x, &to, sizeof x);
		}
		memcpy((char *)out + i * sizeof x, &x, sizeof x);
	}
}

/* ---- numbers ------------------------------------------------------------- */

static const struct number {
	uint32_t width;
	enum kind kind;
	load_fn *load;
	store_fn *store[KINDS];
} numbers[] = {
#define NUMBER(id, name, width, kind) \
	[RECODE_##id] = {width,       \
			 kind,        \
			 load_##name, \
			 {store_s_##name, store_u_##name, store_f_##name}}
	NUMBER(I8, i8, 1, SIGNED),     NUMBER(I16, i16, 2, SIGNED),
	NUMBER(I32, i32, 4, SIGNED),   NUMBER(I64, i64, 8, SIGNED),
	NUMBER(U8, u8, 1, UNSIGNED),   NUMBER(U16, u16, 2, UNSIGNED),
	NUMBER(U32, u32, 4, UNSIGNED), NUMBER(U64, u64, 8, UNSIGNED),
	NUMBER(F16, f16, 2, FLOATING), NUMBER(F32, f32, 4, FLOATING),
	NUMBER(F64, f64, 8, FLOATING),
};
uint32_t convert_width(uint32_t number)
{
	return number <= RECODE_F64 ? numbers[number].width : 0;
}

void convert_run(uint32_t from, uint32_t to, bool swapped, const void *in,
		 void *out, size_t n)
{
	const struct number *of = &numbers[from], *into = &numbers[to];
	enum way way = swapped || from == RECODE_F16 ? BY_BITS
		       : from == RECODE_F32          ? CAST_F32
						     : CAST;
	union wide w;

	of->load(in, &w, n);
	if (way == BY_BITS && of->kind == FLOATING)
		fill_nans(&w, n);
	into->store[of->kind](&w, out, n, way);
}
