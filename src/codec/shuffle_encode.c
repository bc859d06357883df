/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 2, shuffle, the other way: elements into byte planes. */
/*
 * Undoing a shuffle interleaves registers bytewise, round after round (shuffle.c has the
 * drawing).  Doing it takes them apart: of two neighbouring registers all even bytes are
 * register j of the next round, all odd ones register j + elem/2; after log2(elem) rounds
 * each register is a piece of one plane.  Even bytes are had by masking 16-bit lanes and
 * packing them, odd ones by shifting and packing.
 */
#include "codec/codec.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <emmintrin.h>
#define HAVE_SIMD 1
#define INLINE static inline __attribute__((always_inline))
#ifndef __OPTIMIZE__
#define UNROLL /* compilers complain about an unrolling that they ignore */
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#define PLAIN_BYTES 8192u /* of input per round */

/* Elements [first, n) of `elem` bytes each, so many at a time as stay in the cache. */
static void do_plain(const unsigned char *in, unsigned char *out, size_t n,
		     size_t elem, size_t first)
{
	size_t step = elem < PLAIN_BYTES ? PLAIN_BYTES / elem : 1;

	while (first < n) {
		size_t count = n - first < step ? n - first : step;
		const unsigned char *from = in + first * elem;

		for (size_t j = 0; j < elem; j++) {
			unsigned char *to = out + j * n + first;

			for (size_t i = 0; i < count; i++)
				to[i] = from[i * elem + j];
		}
		first += count;
	}
}

#ifdef HAVE_SIMD
INLINE size_t do_sse2(const unsigned char *in, unsigned char *out, size_t n,
		      int elem)
{
	const __m128i low = _mm_set1_epi16(0xff);
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		const __m128i *from = (const __m128i *)(in + i * (size_t)elem);
		__m128i a[16], b[16];

		UNROLL
		for (int j = 0; j < elem; j++)
			a[j] = _mm_loadu_si128(from + j);
		UNROLL
		for (int round = 1; round < elem; round *= 2) {
			UNROLL
			for (int j = 0; j < elem / 2; j++) {
				__m128i x = a[2 * j], y = a[2 * j + 1];

				b[j] = _mm_packus_epi16(_mm_and_si128(x, low),
							_mm_and_si128(y, low));
				b[j + elem / 2] =
					_mm_packus_epi16(_mm_srli_epi16(x, 8),
							 _mm_srli_epi16(y, 8));
			}
			UNROLL
			for (int j = 0; j < elem; j++)
				a[j] = b[j];
		}
		UNROLL
		for (int j = 0; j < elem; j++)
			_mm_storeu_si128((__m128i *)(out + (size_t)j * n + i),
					 a[j]);
	}
	return i;
}

/* How many elements were done, a multiple of 16; 0: no such loop. */
static size_t do_by_sse2(const unsigned char *in, unsigned char *out, size_t n,
			 size_t elem)
{
	switch (elem) {
	case 2:
		return do_sse2(in, out, n, 2);
	case 4:
		return do_sse2(in, out, n, 4);
	case 8:
		return do_sse2(in, out, n, 8);
	case 16:
		return do_sse2(in, out, n, 16);
	default:
		return 0;
	}
}
#endif

void shuffle_do(enum shuffle_path path, const void *in, size_t in_len,
		size_t elem, void *out)
{
	size_t n = in_len / elem, done = 0, body = n * elem;

	if (!in_len)
		return;
	if (elem == 1 || n < 2) {
		memcpy(out, in, in_len);
		return;
	}
#ifdef HAVE_SIMD
	if (path != SHUFFLE_PLAIN)
		done = do_by_sse2(in, out, n, elem);
#else
	(void)path;
#endif
	do_plain(in, out, n, elem, done);
	if (in_len > body)
		memcpy((char *)out + body, (const char *)in + body,
		       in_len - body);
}
