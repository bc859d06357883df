/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of 16 bytes in the compiler's own terms: SSE2 on x86, NEON on ARM. */
#ifndef CODEC_VECTOR_H
#define CODEC_VECTOR_H

#include <stdint.h>
#include <string.h>

/*
 * Each operation that the loops of shuffle and bitshuffle need (loads, zips, and their
 * inverse) is one instruction on either processor, and both gcc and clang find it behind
 * a shuffle of constants.  So there is one loop for both, which the tests on either
 * processor compare with the plain one.
 */
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__) && \
	defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_V128 1
#endif
#endif

/* Functions to be unrolled into their callers, where the number of rounds is constant. */
#define INLINE static inline __attribute__((always_inline))
#ifndef __OPTIMIZE__
#define UNROLL /* compilers warn of an unrolling that they ignore */
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#ifdef HAVE_V128
typedef unsigned char v128 __attribute__((vector_size(16)));
typedef uint16_t v128_words __attribute__((vector_size(16)));

INLINE v128 v128_load(const void *p)
{
	v128 v;

	memcpy(&v, p, sizeof v);
	return v;
}

INLINE void v128_store(void *p, v128 v)
{
	memcpy(p, &v, sizeof v);
}

/* Interleave the bytes of the low halves, or of the high halves. */
INLINE v128 v128_zip_low(v128 a, v128 b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
				       5, 21, 6, 22, 7, 23);
}

INLINE v128 v128_zip_high(v128 a, v128 b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12,
				       28, 13, 29, 14, 30, 15, 31);
}

/* Take the bytes at even, or odd, places of the 32 bytes of both. */
INLINE v128 v128_even(v128 a, v128 b)
{
	return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
				       20, 22, 24, 26, 28, 30);
}

INLINE v128 v128_odd(v128 a, v128 b)
{
	return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19,
				       21, 23, 25, 27, 29, 31);
}
#endif

#endif
