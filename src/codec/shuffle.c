/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 2, shuffle: byte planes back into elements; and byte order. */
/*
 * Shuffled bytes are all first bytes of the elements, then all second bytes,
 * and so on; what is left over when the elements do not fill the chunk follows
 * unchanged.  Undoing it is a transposition of `elem` rows of n bytes.
 *
 * For 2, 4, 8 and 16 bytes it is done in registers.  Take one register from
 * each plane and interleave register j bytewise with register j + elem/2, the
 * low halves giving register 2j of the next round, the high halves 2j + 1;
 * after log2(elem) rounds the registers hold the elements in order:
 *
 *	planes		p0 = a0 b0 c0 ...   p1 = a1 b1 c1 ...
 *	low halves	a0 a1 b0 b1 ...     high halves  i0 i1 j0 j1 ...
 *
 * AVX2 interleaves within its two 128-bit lanes, which thus do the SSE2 work
 * for two neighbouring groups of 16 elements; a last step sorts the lanes.
 *
 * All other sizes, other processors and the last few elements take the plain
 * way: byte by byte, but for as many elements at a time as stay in the first
 * level cache, so that each line of the output is written to memory once.
 */
#include "codec/codec.h"
#include "codec/pipeline.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_SIMD 1
#define TARGET(isa) __attribute__((target(isa)))
/* To be unrolled into their callers, where the count of rounds is constant. */
#define INLINE static inline __attribute__((always_inline))
#ifndef __OPTIMIZE__
#define UNROLL /* compilers complain about an unrolling that they ignore */
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#define PLAIN_BYTES 8192u /* of output per round */

/* Elements [first, n) of `elem` bytes each. */
static void undo_plain(const unsigned char *in, unsigned char *out, size_t n,
		       size_t elem, size_t first)
{
	size_t step = elem < PLAIN_BYTES ? PLAIN_BYTES / elem : 1;

	while (first < n) {
		size_t count = n - first < step ? n - first : step;
		unsigned char *to = out + first * elem;

		for (size_t j = 0; j < elem; j++) {
			const unsigned char *from = in + j * n + first;

			for (size_t i = 0; i < count; i++)
				to[i * elem + j] = from[i];
		}
		first += count;
	}
}

#ifdef HAVE_SIMD
INLINE size_t undo_sse2(const unsigned char *in, unsigned char *out, size_t n,
			int elem)
{
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		__m128i a[16], b[16];

		UNROLL
		for (int j = 0; j < elem; j++)
			a[j] = _mm_loadu_si128(
				(const __m128i *)(in + (size_t)j * n + i));
		UNROLL
		for (int round = 1; round < elem; round *= 2) {
			UNROLL
			for (int j = 0; j < elem / 2; j++) {
				b[2 * j] = _mm_unpacklo_epi8(a[j],
							     a[j + elem / 2]);
				b[2 * j + 1] = _mm_unpackhi_epi8(
					a[j], a[j + elem / 2]);
			}
			UNROLL
			for (int j = 0; j < elem; j++)
				a[j] = b[j];
		}
		UNROLL
		for (int j = 0; j < elem; j++)
			_mm_storeu_si128(
				(__m128i *)(out + i * (size_t)elem) + j, a[j]);
	}
	return i;
}

TARGET("avx2")
INLINE size_t undo_avx2(const unsigned char *in, unsigned char *out, size_t n,
			int elem)
{
	size_t i;

	for (i = 0; i + 32 <= n; i += 32) {
		__m256i a[16], b[16], *to = (__m256i *)(out + i * (size_t)elem);

		UNROLL
		for (int j = 0; j < elem; j++)
			a[j] = _mm256_loadu_si256(
				(const __m256i *)(in + (size_t)j * n + i));
		UNROLL
		for (int round = 1; round < elem; round *= 2) {
			UNROLL
			for (int j = 0; j < elem / 2; j++) {
				b[2 * j] = _mm256_unpacklo_epi8(
					a[j], a[j + elem / 2]);
				b[2 * j + 1] = _mm256_unpackhi_epi8(
					a[j], a[j + elem / 2]);
			}
			UNROLL
			for (int j = 0; j < elem; j++)
				a[j] = b[j];
		}
		UNROLL
		for (int j = 0; j < elem / 2; j++) {
			_mm256_storeu_si256(
				to + j, _mm256_permute2x128_si256(
						a[2 * j], a[2 * j + 1], 0x20));
			_mm256_storeu_si256(
				to + elem / 2 + j,
				_mm256_permute2x128_si256(a[2 * j],
							  a[2 * j + 1], 0x31));
		}
	}
	return i;
}

/* How many elements were done, a multiple of 16; 0: no such loop. */
static size_t undo_by_sse2(const unsigned char *in, unsigned char *out,
			   size_t n, size_t elem)
{
	switch (elem) {
	case 2:
		return undo_sse2(in, out, n, 2);
	case 4:
		return undo_sse2(in, out, n, 4);
	case 8:
		return undo_sse2(in, out, n, 8);
	case 16:
		return undo_sse2(in, out, n, 16);
	default:
		return 0;
	}
}

TARGET("avx2")
static size_t undo_by_avx2(const unsigned char *in, unsigned char *out,
			   size_t n, size_t elem)
{
	switch (elem) {
	case 2:
		return undo_avx2(in, out, n, 2);
	case 4:
		return undo_avx2(in, out, n, 4);
	case 8:
		return undo_avx2(in, out, n, 8);
	case 16:
		return undo_avx2(in, out, n, 16);
	default:
		return 0;
	}
}

enum shuffle_path shuffle_best_path(void)
{
	return __builtin_cpu_supports("avx2") ? SHUFFLE_AVX2 : SHUFFLE_SSE2;
}
#else
enum shuffle_path shuffle_best_path(void)
{
	return SHUFFLE_PLAIN;
}
#endif

void shuffle_undo(enum shuffle_path path, const void *in, size_t in_len,
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
	if (path == SHUFFLE_AVX2)
		done = undo_by_avx2(in, out, n, elem);
	else if (path == SHUFFLE_SSE2)
		done = undo_by_sse2(in, out, n, elem);
#else
	(void)path;
#endif
	undo_plain(in, out, n, elem, done);
	if (in_len > body)
		memcpy((char *)out + body, (const char *)in + body,
		       in_len - body);
}

#ifdef HAVE_SIMD
/* Whole registers of `width`-byte numbers; how many bytes were done. */
TARGET("ssse3")
static size_t swap_ssse3(unsigned char *data, size_t size, unsigned width)
{
	unsigned char order[16];
	__m128i mask;
	size_t i;

	for (unsigned j = 0; j < 16; j++)
		order[j] = (unsigned char)(j / width * width + width - 1 -
					   j % width);
	mask = _mm_loadu_si128((const __m128i *)order);
	for (i = 0; i + 16 <= size; i += 16) {
		__m128i *at = (__m128i *)(data + i);

		_mm_storeu_si128(at,
				 _mm_shuffle_epi8(_mm_loadu_si128(at), mask));
	}
	return i;
}
#endif

void swap_bytes(void *data, size_t size, unsigned width)
{
	unsigned char *d = data;
	size_t done = 0;

	if (width < 2)
		return;
#ifdef HAVE_SIMD
	if (16 % width == 0 && __builtin_cpu_supports("ssse3"))
		done = swap_ssse3(d, size, width);
#endif
	for (; size - done >= width; done += width)
		for (unsigned lo = 0, hi = width - 1; lo < hi; lo++, hi--) {
			unsigned char byte = d[done + lo];

			d[done + lo] = d[done + hi];
			d[done + hi] = byte;
		}
}

static uint32_t element_size(const struct codec_params *p)
{
	return p->n ? p->cd[0] : p->elem_size;
}

static int shuffle_check(const struct codec_params *p, struct error *err)
{
	if (element_size(p))
		return 0;
	return error_set(err, -EBADMSG, "shuffle: element size is 0");
}

static bool shuffle_is_identity(const struct codec_params *p)
{
	return element_size(p) == 1;
}

static int shuffle_decode(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	int r = shuffle_check(p, err);

	if (r < 0)
		return r;
	if (in_len > out_cap)
		return error_set(err, -ENOSPC,
				 "shuffle: %zu bytes, expected at most %zu",
				 in_len, out_cap);
	shuffle_undo(shuffle_best_path(), in, in_len, element_size(p), out);
	*out_len = in_len;
	return 0;
}

static int shuffle_encode(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	int r = shuffle_check(p, err);

	if (r < 0)
		return r;
	if (in_len > out_cap)
		return 1;
	shuffle_do(shuffle_best_path(), in, in_len, element_size(p), out);
	*out_len = in_len;
	return 0;
}

const struct codec codec_shuffle = {
	.name = "shuffle",
	.id = 2,
	.kind = CODEC_SAME_SIZE,
	.check = shuffle_check,
	.decode = shuffle_decode,
	.encode = shuffle_encode,
	.is_identity = shuffle_is_identity,
};
