/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 2, shuffle: byte planes back into elements; and reversing of bytes. */
/*
 * Shuffled bytes are all first bytes of the elements, then all second bytes, and so on;
 * bytes left over when the elements do not fill the chunk follow unchanged.  Undoing it
 * is a transposition of `elem` rows of n bytes.
 *
 * For 2, 4, 8 and 16 bytes it is done in registers.  Take one register from each plane
 * and interleave register j bytewise with register j + elem/2, the low halves giving
 * register 2j of the next round, the high halves 2j + 1; after log2(elem) rounds the
 * registers hold the elements in order:
 *
 *	planes		p0 = a0 b0 c0 ...   p1 = a1 b1 c1 ...
 *	low halves	a0 a1 b0 b1 ...     high halves  i0 i1 j0 j1 ...
 *
 * AVX2 interleaves within its two 128-bit lanes, which thus do the same work for two
 * neighbouring groups of 16 elements; a last step sorts the lanes.
 *
 * Other sizes below 16 are done as the next power of two, with zeros for the missing
 * planes; an element is written with its zeros, and the next one over them.  Longer
 * elements are done 16 planes at a time.
 *
 * The last few elements, and other processors, take the plain way: byte by byte, but for
 * as many elements at a time as stay in the first-level cache, so that each line of the
 * output is written to memory once.
 */
#include "codec/codec.h"
#include "codec/pipeline.h"

#include <errno.h>
#include <string.h>

#include "codec/vector.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_AVX2 1
#define TARGET(isa) __attribute__((target(isa)))
#endif

#define PLAIN_BYTES 8192u /* bytes of output per round */

/* Undo elements [first, n) of `elem` bytes each, byte by byte. */
static void shuffle_undo_plain(const unsigned char *in, unsigned char *out,
			       size_t n, size_t elem, size_t first)
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

#ifdef HAVE_V128
/* Load sixteen elements from `elem` planes, n bytes apart, as `size` registers.  They are
 * side by side in elements of `size` bytes, a power of two that is at least elem. */
INLINE void interleave_planes(const unsigned char *in, size_t n, int elem,
			      int size, v128 *a)
{
	v128 b[16];

	UNROLL
	for (int j = 0; j < size; j++)
		a[j] = j < elem ? v128_load(in + (size_t)j * n) : (v128){0};
	UNROLL
	for (int round = 1; round < size; round *= 2) {
		UNROLL
		for (int j = 0; j < size / 2; j++) {
			b[2 * j] = v128_zip_low(a[j], a[j + size / 2]);
			b[2 * j + 1] = v128_zip_high(a[j], a[j + size / 2]);
		}
		UNROLL
		for (int j = 0; j < size; j++)
			a[j] = b[j];
	}
}

/* Undo elements of 2, 4, 8 or 16 bytes; return how many were done. */
INLINE size_t undo_whole(const unsigned char *in, unsigned char *out, size_t n,
			 int elem)
{
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		v128 a[16];

		interleave_planes(in + i, n, elem, elem, a);
		UNROLL
		for (int j = 0; j < elem; j++)
			v128_store(out + i * (size_t)elem + 16 * j, a[j]);
	}
	return i;
}

/* Undo elements of fewer bytes than the power of two `size`: each is written with surplus
 * bytes, over which the next one is written; so there must be a next one. */
INLINE size_t undo_part(const unsigned char *in, unsigned char *out, size_t n,
			int elem, int size)
{
	size_t i;

	for (i = 0; i + 17 <= n; i += 16) {
		unsigned char *to = out + i * (size_t)elem;
		v128 a[16];

		interleave_planes(in + i, n, elem, size, a);
		UNROLL
		for (int j = 0; j < 16; j++)
			memcpy(to + j * elem,
			       (const char *)a + (size_t)(j * size),
			       (size_t)size);
	}
	return i;
}

/* Undo elements of more than 16 bytes: sixteen planes at a time, and the last sixteen
 * planes once more if their number is not a multiple of sixteen. */
static size_t undo_long(const unsigned char *in, unsigned char *out, size_t n,
			size_t elem)
{
	size_t i;

	for (i = 0; i + 16 <= n; i += 16)
		for (size_t j = 0; j < elem; j += 16) {
			size_t first = j + 16 <= elem ? j : elem - 16;
			unsigned char *to = out + i * elem + first;
			v128 a[16];

			interleave_planes(in + first * n + i, n, 16, 16, a);
			UNROLL
			for (int k = 0; k < 16; k++)
				v128_store(to + (size_t)k * elem, a[k]);
		}
	return i;
}

/* Return how many elements were done, a multiple of 16. */
static size_t undo_by_v128(const unsigned char *in, unsigned char *out,
			   size_t n, size_t elem)
{
#define WHOLE(size) \
	case size:  \
		return undo_whole(in, out, n, size)
#define PART(elem, size) \
	case elem:       \
		return undo_part(in, out, n, elem, size)
	switch (elem) {
		WHOLE(2);
		PART(3, 4);
		WHOLE(4);
		PART(5, 8);
		PART(6, 8);
		PART(7, 8);
		WHOLE(8);
		PART(9, 16);
		PART(10, 16);
		PART(11, 16);
		PART(12, 16);
		PART(13, 16);
		PART(14, 16);
		PART(15, 16);
		WHOLE(16);
	default:
		return undo_long(in, out, n, elem);
	}
#undef WHOLE
#undef PART
}
#endif

#ifdef HAVE_AVX2
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
		return undo_by_v128(in, out, n, elem);
	}
}
#endif

enum shuffle_path shuffle_best_path(void)
{
#ifdef HAVE_AVX2
	if (__builtin_cpu_supports("avx2"))
		return SHUFFLE_AVX2;
#endif
#ifdef HAVE_V128
	return SHUFFLE_V128;
#else
	return SHUFFLE_PLAIN;
#endif
}

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
#ifdef HAVE_AVX2
	if (path == SHUFFLE_AVX2)
		done = undo_by_avx2(in, out, n, elem);
#endif
#ifdef HAVE_V128
	if (path == SHUFFLE_V128)
		done = undo_by_v128(in, out, n, elem);
#endif
	(void)path;
	shuffle_undo_plain(in, out, n, elem, done);
	if (in_len > body)
		memcpy((char *)out + body, (const char *)in + body,
		       in_len - body);
}

#ifdef HAVE_AVX2
/* Reverse the numbers of `width` bytes in whole registers; return how many bytes were
 * done. */
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
#elif defined(HAVE_V128)
/* As swap_ssse3, for processors that all have one instruction for it. */
static size_t swap_v128(unsigned char *data, size_t size, unsigned width)
{
	size_t i;

	for (i = 0; i + 16 <= size; i += 16) {
		v128 v = v128_load(data + i);

		if (width == 2)
			v = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7,
						    6, 9, 8, 11, 10, 13, 12, 15,
						    14);
		else if (width == 4)
			v = __builtin_shufflevector(v, v, 3, 2, 1, 0, 7, 6, 5,
						    4, 11, 10, 9, 8, 15, 14, 13,
						    12);
		else if (width == 8)
			v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1,
						    0, 15, 14, 13, 12, 11, 10,
						    9, 8);
		else
			v = __builtin_shufflevector(v, v, 15, 14, 13, 12, 11,
						    10, 9, 8, 7, 6, 5, 4, 3, 2,
						    1, 0);
		v128_store(data + i, v);
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
#ifdef HAVE_AVX2
	if (16 % width == 0 && __builtin_cpu_supports("ssse3"))
		done = swap_ssse3(d, size, width);
#elif defined(HAVE_V128)
	if (16 % width == 0)
		done = swap_v128(d, size, width);
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
