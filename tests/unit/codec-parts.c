/* SPDX-License-Identifier: BSD-2-Clause */
/* Very large chunks in parts: the same bytes, and the same refusals, as in one. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <lz4.h>

#include "base/bytes.h"
#include "base/team.h"
#include "codec/parts.h"
#include "codec_test.h"

#if HAVE_BLOSC
#include <blosc.h>
#endif

#define MIB ((size_t)1 << 20)
#define HELPERS 3

/* Numbers of few bits, as counts are; the caller frees them. */
static unsigned char *counts(size_t n)
{
	unsigned char *p = codec_test_filled(0, n);

	for (size_t i = 0; i < n; i += 2)
		p[i] = (unsigned char)(test_random() & 7);
	return p;
}

/* ---- with and without a team --------------------------------------------- */

static int decode(const struct codec_test *t, unsigned char *out, size_t *len,
		  struct error *err)
{
	memset(out, 0xaa, t->n);
	return t->codec->decode(t->params, t->in, t->in_len, out, t->n, len,
				err);
}

/* Damaged or not: what a team makes of it is what one thread makes of it. */
static int same(const struct codec_test *t, bool words)
{
	unsigned char *one = malloc(t->n), *many = malloc(t->n);
	size_t one_len = 0, many_len = 0;
	struct error why = {0}, err = {0};
	int r;

	CHECK(one && many);
	r = decode(t, one, &one_len, &why);
	CHECK_OK(team_start(HELPERS, NULL));
	CHECK_EQ_I(decode(t, many, &many_len, &err), r);
	team_stop();
	if (r == 0) {
		CHECK_EQ_U(many_len, one_len);
		CHECK_MEM(many, one, one_len);
	} else if (words) {
		CHECK_STR(err.text, why.text);
	}
	free(one);
	free(many);
	return r;
}

static void check(const struct codec_test *t, bool words)
{
	unsigned char *out = malloc(t->n), *in;
	struct codec_test bad = *t;
	unsigned refused = 0;
	struct error err = {0};
	size_t len;

	CHECK(out);
	CHECK_OK(team_start(HELPERS, NULL));
	CHECK_OK(decode(t, out, &len, &err));
	CHECK_EQ_U(len, t->n);
	CHECK_MEM(out, t->plain, t->n);
	team_stop();
	CHECK_EQ_I(same(t, words), 0);
	for (unsigned k = 0; k < test_rounds(40); k++) {
		in = codec_test_copy(t->in, t->in_len);
		bad.in = in;
		bad.in_len =
			k % 4 ? t->in_len : test_random() % (t->in_len + 1);
		if (bad.in_len)
			in[test_random() % bad.in_len] ^=
				(unsigned char)(1 + test_random() % 255);
		refused += same(&bad, words) < 0;
		free(in);
	}
	CHECK(refused > 0);
	free(out);
}

/* ---- LZ4, and bitshuffle -------------------------------------------------- */

/* A frame of blocks, `elem` 0: not shuffled.  The caller frees it. */
static unsigned char *frame_of(const unsigned char *plain, size_t n,
			       size_t block, size_t elem, size_t *len)
{
	size_t room = 12 + n + (n / block + 1) * (4 + 64 + block / 200);
	unsigned char *f = malloc(room), *tmp = malloc(block);
	size_t at = 12;

	CHECK(f && tmp);
	store_be64(f, n);
	store_be32(f + 8, (uint32_t)block);
	for (size_t i = 0; i < n; i += block) {
		size_t size = block < n - i ? block : n - i;
		const unsigned char *from = plain + i;
		int stored;

		if (elem && size < block)
			size -= size % (8 * elem);
		if (!size) { /* what is no whole eight elements */
			memcpy(f + at, from, n - i);
			at += n - i;
			break;
		}
		if (elem) {
			codec_test_shuffle_bits(from, size / elem, elem, tmp);
			from = tmp;
		}
		stored = LZ4_compress_default((const char *)from,
					      (char *)f + at + 4, (int)size,
					      (int)(room - at - 4));
		CHECK(stored > 0);
		store_be32(f + at, (uint32_t)stored);
		at += 4 + (size_t)stored;
		if (elem && size < block && i + size < n) {
			memcpy(f + at, plain + i + size, n - i - size);
			at += n - i - size;
		}
	}
	free(tmp);
	*len = at;
	return f;
}

TEST(lz4)
{
	static const struct codec_params none = {.n = 0};
	static const size_t sizes[] = {PARTS_LEAST - 1, PARTS_LEAST,
				       5 * MIB + 12345};
	static const size_t blocks[] = {4096, 65536, 700001, 3 * MIB, 64 * MIB};

	for (unsigned i = 0; i < 3; i++) {
		unsigned char *plain = counts(sizes[i]);

		for (unsigned k = 0; k < 5; k++) {
			size_t len;
			unsigned char *in =
				frame_of(plain, sizes[i], blocks[k], 0, &len);
			const struct codec_test t = {
				&codec_lz4, &none, in, len, plain, sizes[i]};

			check(&t, true);
			free(in);
		}
		free(plain);
	}
}

TEST(bitshuffle)
{
	static const size_t elems[] = {1, 2, 4, 3};
	static const size_t blocks[] = {8192, 1 << 20};

	for (unsigned i = 0; i < 8; i++) {
		size_t elem = elems[i % 4];
		size_t block = blocks[i / 4] / elem / 8 * 8 * elem;
		size_t n = (3 * MIB + 8000 * i) / elem * elem + 5 * elem;
		const struct codec_params p = {
			.n = 5, .cd = {0, 3, (uint32_t)elem, 0, 2}};
		unsigned char *plain = counts(n);
		size_t len;
		unsigned char *in = frame_of(plain, n, block, elem, &len);

		check(&(const struct codec_test){&codec_bitshuffle, &p, in, len,
						 plain, n},
		      true);
		free(in);
		free(plain);
	}
}

/* ---- blosc ---------------------------------------------------------------- */

#if HAVE_BLOSC
static void check_blosc(size_t n, size_t elem, size_t block, int shuffle,
			const char *by, int level)
{
	static const struct codec_params none = {.n = 0};
	unsigned char *plain = counts(n);
	unsigned char *in = malloc(n + BLOSC_MAX_OVERHEAD);
	int len;

	CHECK(in);
	len = blosc_compress_ctx(level, shuffle, elem, n, plain, in,
				 n + BLOSC_MAX_OVERHEAD, by, block, 1);
	CHECK(len > 0);
	/* Which block it is differs. */
	check(&(const struct codec_test){&codec_blosc, &none, in, (size_t)len,
					 plain, n},
	      false);
	free(in);
	free(plain);
}

TEST(blosc)
{
	check_blosc(5 * MIB, 4, 0, BLOSC_SHUFFLE, "lz4", 5);
	check_blosc(5 * MIB + 4, 4, 0, BLOSC_BITSHUFFLE, "lz4", 5);
	check_blosc(5 * MIB + 3, 4, 0, BLOSC_SHUFFLE, "blosclz", 9);
	check_blosc(4 * MIB + 2, 2, 100000, BLOSC_NOSHUFFLE, "lz4", 1);
	check_blosc(6 * MIB + 24, 12, 1 << 20, BLOSC_SHUFFLE, "zlib", 1);
	check_blosc(3 * MIB, 1, 0, BLOSC_NOSHUFFLE, "lz4", 0);
}
#endif

/* ---- where it is cut ------------------------------------------------------ */

TEST(cuts)
{
	CHECK_EQ_U(parts_blocks(64 * MIB, 65536), 1024);
	CHECK_OK(team_start(HELPERS, NULL));
	CHECK_EQ_U(parts_blocks(PARTS_LEAST - 1, 65536), 32);
	CHECK_EQ_U(parts_blocks(PARTS_LEAST, 65536), 8);
	CHECK_EQ_U(parts_blocks(64 * MIB, 65536), 64);
	CHECK_EQ_U(parts_blocks(64 * MIB, 5 * MIB), 1);
	CHECK_EQ_U(parts_blocks(64 * MIB, 64 * MIB), 1);
	CHECK_EQ_U(parts_blocks(64 * MIB, 0), 1);
	CHECK_EQ_U(parts_blocks(0, 65536), 1);
	CHECK(parts_blocks(SIZE_MAX, 1) > 1);
	team_stop();
}

int main(void)
{
	RUN(lz4);
	RUN(bitshuffle);
#if HAVE_BLOSC
	RUN(blosc);
#endif
	RUN(cuts);
	codec_thread_cleanup();
	return test_done();
}
