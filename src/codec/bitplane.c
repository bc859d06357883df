/* SPDX-License-Identifier: BSD-2-Clause */
/* Undo the transposition of bits: rows of bits become elements again. */
/*
 * Eight rows belong to one byte of the elements.  Byte i of each of them, one below the
 * other, is a square of 8 by 8 bits: its rows are bits, its columns elements 8 i to 8 i +
 * 7.  Turned over its diagonal, its rows are those elements' bytes.
 *
 * Squares are turned by exchanging quarters: the upper right half of the bits with the
 * lower left, then within each quarter, then within each pair.  In a 64-bit word that
 * turns one square (the plain way).  With one register for each of the eight rows it
 * turns as many squares as a register has bytes, and whole registers exchange bits:
 *
 *	row 0   a b c d  e f g h      rows 0 and 4 exchange e f g h of the
 *	...                           one with A B C D of the other; so do
 *	row 4   A B C D  E F G H      1 and 5, 2 and 6, 3 and 7
 *
 * Afterwards register e holds the bytes of elements e, 8 + e, 16 + e ..., which is a byte
 * shuffle of 8-byte elements; it is undone as in shuffle.c.
 *
 * The result is byte planes, which is what the shuffle filter makes of elements, and
 * shuffle_undo does the rest.  The planes between the two steps are of a slice of the
 * elements, which stays in the first-level cache.  Elements that are left over, or too
 * large for slices, take the plain way.
 */
#include "codec/bitplane.h"

#include <string.h>

#include "codec/vector.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(HAVE_V128)
#include <immintrin.h>
#define HAVE_AVX2 1
#define TARGET(isa) __attribute__((target(isa)))
#endif

#define SLICE_BYTES 16384u
#define SLICE_ELEMENTS \
	256u /* a slice is a multiple of this: the stride of AVX2 */

/* Exchange the bits `mask` << `shift` with those at `mask`. */
static uint64_t exchange_bits(uint64_t x, unsigned shift, uint64_t mask)
{
	uint64_t t = (x ^ x >> shift) & mask;

	return x ^ t ^ t << shift;
}

/* Turn the square whose row k is byte k, counted from the lowest byte. */
static uint64_t turn_square_of_bits(uint64_t x)
{
	x = exchange_bits(x, 7, 0x00aa00aa00aa00aa);
	x = exchange_bits(x, 14, 0x0000cccc0000cccc);
	return exchange_bits(x, 28, 0x00000000f0f0f0f0);
}

/* Undo elements [first, n), of any size, the plain way; `first` is a multiple of 8. */
static void bitplane_undo_plain(const unsigned char *in, size_t n, size_t elem,
				size_t first, unsigned char *out)
{
	size_t row = n / 8;

	for (size_t i = first / 8; i < row; i++) {
		unsigned char *to = out + 8 * i * elem;

		for (size_t j = 0; j < elem; j++) {
			const unsigned char *from = in + 8 * j * row + i;
			uint64_t x = 0;

			for (unsigned k = 0; k < 8; k++)
				x |= (uint64_t)from[k * row] << 8 * k;
			x = turn_square_of_bits(x);
			for (unsigned e = 0; e < 8; e++)
				to[e * elem + j] = (unsigned char)(x >> 8 * e);
		}
	}
}

#ifdef HAVE_V128
/* Intel's names of the AVX2 instructions, for 16 bytes. */
INLINE v128 v128_xor_si128(v128 a, v128 b)
{
	return a ^ b;
}
INLINE v128 v128_and_si128(v128 a, v128 b)
{
	return a & b;
}
INLINE v128 v128_srli_epi16(v128 a, int bits)
{
	return (v128)((v128_words)a >> bits);
}
INLINE v128 v128_slli_epi16(v128 a, int bits)
{
	return (v128)((v128_words)a << bits);
}
#define v128_unpacklo_epi8 v128_zip_low
#define v128_unpackhi_epi8 v128_zip_high

/* Exchange the bits `mask` << `bits` of register `low` with the bits `mask` of `high`. */
#define SWAP(ISA, WIDTH, low, high, bits, mask)                             \
	do {                                                                \
		t = ISA##_xor_si##WIDTH(ISA##_srli_epi16(low, bits), high); \
		t = ISA##_and_si##WIDTH(t, mask);                           \
		high = ISA##_xor_si##WIDTH(high, t);                        \
		low = ISA##_xor_si##WIDTH(low, ISA##_slli_epi16(t, bits));  \
	} while (0)

/* Turn the squares whose rows are the registers r0 to r7; `t` is scratch. */
#define TURN(ISA, WIDTH, m4, m2, m1)             \
	do {                                     \
		SWAP(ISA, WIDTH, r0, r4, 4, m4); \
		SWAP(ISA, WIDTH, r1, r5, 4, m4); \
		SWAP(ISA, WIDTH, r2, r6, 4, m4); \
		SWAP(ISA, WIDTH, r3, r7, 4, m4); \
		SWAP(ISA, WIDTH, r0, r2, 2, m2); \
		SWAP(ISA, WIDTH, r1, r3, 2, m2); \
		SWAP(ISA, WIDTH, r4, r6, 2, m2); \
		SWAP(ISA, WIDTH, r5, r7, 2, m2); \
		SWAP(ISA, WIDTH, r0, r1, 1, m1); \
		SWAP(ISA, WIDTH, r2, r3, 1, m1); \
		SWAP(ISA, WIDTH, r4, r5, 1, m1); \
		SWAP(ISA, WIDTH, r6, r7, 1, m1); \
	} while (0)

/* Interleave the bytes of two registers: the low halves go to `a`, the high halves to
 * `b`. */
#define ZIP(ISA, a, b)                         \
	do {                                   \
		t = ISA##_unpackhi_epi8(a, b); \
		a = ISA##_unpacklo_epi8(a, b); \
		b = t;                         \
	} while (0)

/* Undo a byte shuffle of 8-byte elements in each 128 bits: three perfect shuffles of
 * eight registers put each byte back in its place. */
#define UNSHUFFLE(ISA)            \
	do {                      \
		ZIP(ISA, r0, r4); \
		ZIP(ISA, r1, r5); \
		ZIP(ISA, r2, r6); \
		ZIP(ISA, r3, r7); \
		ZIP(ISA, r0, r2); \
		ZIP(ISA, r4, r6); \
		ZIP(ISA, r1, r3); \
		ZIP(ISA, r5, r7); \
		ZIP(ISA, r0, r1); \
		ZIP(ISA, r2, r3); \
		ZIP(ISA, r4, r5); \
		ZIP(ISA, r6, r7); \
	} while (0)

/* Turn eight rows of n bytes, `row` bytes apart, into one plane of 8 * n bytes; n is a
 * multiple of 16. */
static void plane_v128(const unsigned char *in, size_t row, size_t n,
		       unsigned char *out)
{
	const v128 m4 = (v128){0} + 0x0f, m2 = (v128){0} + 0x33,
		   m1 = (v128){0} + 0x55;

	for (size_t i = 0; i < n; i += 16) {
		const unsigned char *from = in + i;
		unsigned char *to = out + 8 * i;
#define ROW(k) v128_load(from + (k)*row)
		v128 r0 = ROW(0), r1 = ROW(1), r2 = ROW(2), r3 = ROW(3),
		     r4 = ROW(4), r5 = ROW(5), r6 = ROW(6), r7 = ROW(7), t;
#undef ROW

		TURN(v128, 128, m4, m2, m1);
		UNSHUFFLE(v128);
		v128_store(to, r0);
		v128_store(to + 16, r1);
		v128_store(to + 32, r2);
		v128_store(to + 48, r3);
		v128_store(to + 64, r4);
		v128_store(to + 80, r5);
		v128_store(to + 96, r6);
		v128_store(to + 112, r7);
	}
}

#ifdef HAVE_AVX2
/* As plane_v128; n is a multiple of 32. */
TARGET("avx2")
static void plane_avx2(const unsigned char *in, size_t row, size_t n,
		       unsigned char *out)
{
	const __m256i m4 = _mm256_set1_epi8(0x0f), m2 = _mm256_set1_epi8(0x33),
		      m1 = _mm256_set1_epi8(0x55);

	for (size_t i = 0; i < n; i += 32) {
		const unsigned char *from = in + i;
		__m256i *to = (__m256i *)(out + 8 * i), t;
#define ROW(k) _mm256_loadu_si256((const __m256i *)(from + (k)*row))
		__m256i r0 = ROW(0), r1 = ROW(1), r2 = ROW(2), r3 = ROW(3),
			r4 = ROW(4), r5 = ROW(5), r6 = ROW(6), r7 = ROW(7);
#undef ROW

		TURN(_mm256, 256, m4, m2, m1);
		UNSHUFFLE(_mm256);
#define STORE(k, a, b)                                                        \
	_mm256_storeu_si256(to + (k), _mm256_permute2x128_si256(a, b, 0x20)), \
		_mm256_storeu_si256(to + 4 + (k),                             \
				    _mm256_permute2x128_si256(a, b, 0x31))
		STORE(0, r0, r1);
		STORE(1, r2, r3);
		STORE(2, r4, r5);
		STORE(3, r6, r7);
#undef STORE
	}
}
#endif

/* Undo elements [first, first + n); n is a multiple of SLICE_ELEMENTS, and n * elem at
 * most SLICE_BYTES. */
static void undo_slice(enum shuffle_path path, const unsigned char *in,
		       size_t row, size_t elem, size_t first, size_t n,
		       unsigned char *out)
{
	unsigned char slice[SLICE_BYTES];
	unsigned char *planes = elem == 1 ? out + first : slice;

	for (size_t j = 0; j < elem; j++) {
		const unsigned char *from = in + 8 * j * row + first / 8;

#ifdef HAVE_AVX2
		if (path == SHUFFLE_AVX2) {
			plane_avx2(from, row, n / 8, planes + j * n);
			continue;
		}
#endif
		plane_v128(from, row, n / 8, planes + j * n);
	}
	if (elem > 1)
		shuffle_undo(path, planes, n * elem, elem, out + first * elem);
}

/* Return how many elements were done, a multiple of 8. */
static size_t undo_slices(enum shuffle_path path, const unsigned char *in,
			  size_t n, size_t elem, unsigned char *out)
{
	size_t most = SLICE_BYTES / elem / SLICE_ELEMENTS * SLICE_ELEMENTS;
	size_t whole = n / SLICE_ELEMENTS * SLICE_ELEMENTS, done = 0;

	if (!most)
		return 0;
	while (done < whole) {
		size_t count = whole - done < most ? whole - done : most;

		undo_slice(path, in, n / 8, elem, done, count, out);
		done += count;
	}
	return done;
}
#endif

void bitplane_undo(enum shuffle_path path, const void *in, size_t n,
		   size_t elem, void *out)
{
	size_t done = 0;

#ifdef HAVE_V128
	if (path != SHUFFLE_PLAIN)
		done = undo_slices(path, in, n, elem, out);
#else
	(void)path;
#endif
	bitplane_undo_plain(in, n, elem, done, out);
}
