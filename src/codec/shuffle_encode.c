/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 2, shuffle, for writing: elements into byte planes. */
/*
 * Undoing a shuffle interleaves registers bytewise, round after round (shuffle.c has the
 * drawing).  Shuffling takes them apart: all even bytes of two neighbouring registers are
 * register j of the next round, all odd ones register j + elem/2; after log2(elem) rounds
 * each register is a piece of one plane.
 */
#include "codec/codec.h"

#include <string.h>

#include "codec/vector.h"

#define PLAIN_BYTES 8192u /* bytes of input per round */

/* Shuffle elements [first, n) of `elem` bytes each, as many at a time as stay in the
 * cache. */
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

#ifdef HAVE_V128
INLINE size_t do_whole(const unsigned char *in, unsigned char *out, size_t n,
		       int elem)
{
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		v128 a[16], b[16];

		UNROLL
		for (int j = 0; j < elem; j++)
			a[j] = v128_load(in + i * (size_t)elem + 16 * j);
		UNROLL
		for (int round = 1; round < elem; round *= 2) {
			UNROLL
			for (int j = 0; j < elem / 2; j++) {
				b[j] = v128_even(a[2 * j], a[2 * j + 1]);
				b[j + elem / 2] =
					v128_odd(a[2 * j], a[2 * j + 1]);
			}
			UNROLL
			for (int j = 0; j < elem; j++)
				a[j] = b[j];
		}
		UNROLL
		for (int j = 0; j < elem; j++)
			v128_store(out + (size_t)j * n + i, a[j]);
	}
	return i;
}

/* Return how many elements were done, a multiple of 16; 0 for sizes without a loop
 * here. */
static size_t do_by_v128(const unsigned char *in, unsigned char *out, size_t n,
			 size_t elem)
{
	switch (elem) {
	case 2:
		return do_whole(in, out, n, 2);
	case 4:
		return do_whole(in, out, n, 4);
	case 8:
		return do_whole(in, out, n, 8);
	case 16:
		return do_whole(in, out, n, 16);
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
#ifdef HAVE_V128
	if (path != SHUFFLE_PLAIN)
		done = do_by_v128(in, out, n, elem);
#else
	(void)path;
#endif
	do_plain(in, out, n, elem, done);
	if (in_len > body)
		memcpy((char *)out + body, (const char *)in + body,
		       in_len - body);
}
