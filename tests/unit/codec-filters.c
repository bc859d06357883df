/* SPDX-License-Identifier: BSD-2-Clause */
/* Each filter: bytes of the reference writers, round trips, damage. */
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <lz4.h>
#include <zstd.h>

#include "codec_test.h"

/*
 * Golden vectors.  The plain bytes are golden_plain.  h5py 3.7 with HDF5
 * 1.10.8 wrote them as one chunk per filter and gave the chunk back by
 * read_direct_chunk; zstd is what `zstd -c` 1.5.4 wrote; lz4 is two blocks of
 * 50 and 46 bytes taken out of what `lz4 -12` 1.9.4 wrote, in the filter's
 * framing.
 */
static const unsigned char by_deflate[] = {
	0x78, 0x5e, 0x63, 0x60, 0x00, 0x01, 0x76, 0x30, 0x94, 0x01,
	0x43, 0x7b, 0x30, 0x84, 0x80, 0xf5, 0x60, 0xf8, 0x07, 0x0c,
	0xb5, 0xc1, 0x10, 0x02, 0xb8, 0x19, 0x41, 0x30, 0x85, 0x01,
	0x04, 0xbf, 0x83, 0x21, 0x04, 0x48, 0x33, 0x82, 0xe0, 0x1a,
	0x06, 0x10, 0xf4, 0x06, 0x43, 0x00, 0x3e, 0xe0, 0x0e, 0x17,
};
static const unsigned char by_fletcher32[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x07, 0x00, 0x07, 0x00,
	0x1c, 0x00, 0x1c, 0x00, 0x1c, 0x00, 0x3f, 0x00, 0x3f, 0x00, 0x3f, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xaf, 0x00, 0xaf, 0x00, 0xaf, 0x00,
	0xfc, 0x00, 0xfc, 0x00, 0xfc, 0x00, 0x2b, 0x00, 0x2b, 0x00, 0x2b, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0b, 0x01, 0x0b, 0x01, 0x0b, 0x01,
	0x64, 0x00, 0x64, 0x00, 0x64, 0x00, 0xf7, 0x00, 0xf7, 0x00, 0xf7, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1b, 0x01, 0x1b, 0x01, 0x1b, 0x01,
	0xac, 0x00, 0xac, 0x00, 0xac, 0x00, 0x4b, 0x00, 0x4b, 0x00, 0x4b, 0x00,
	0x14, 0x10, 0x72, 0xe1,
};
static const unsigned char by_lzf[] = {
	0x01, 0x00, 0x00, 0x40, 0x00, 0x00, 0x07, 0x60, 0x01, 0x00, 0x1c,
	0x60, 0x01, 0x00, 0x3f, 0x60, 0x01, 0x80, 0x00, 0x00, 0xaf, 0x60,
	0x01, 0x00, 0xfc, 0x60, 0x01, 0x00, 0x2b, 0x60, 0x01, 0x80, 0x00,
	0x01, 0x0b, 0x01, 0x40, 0x01, 0x01, 0x64, 0x00, 0x40, 0x01, 0x00,
	0xf7, 0x60, 0x01, 0x80, 0x00, 0x01, 0x1b, 0x01, 0x40, 0x01, 0x01,
	0xac, 0x00, 0x40, 0x01, 0x00, 0x4b, 0x20, 0x01, 0x01, 0x4b, 0x00,
};
static const unsigned char by_zstd[] = {
	0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x1d, 0x02, 0x00, 0xc4, 0x02, 0x00,
	0x00, 0x07, 0x1c, 0x3f, 0xaf, 0x00, 0xaf, 0x00, 0xaf, 0x00, 0xfc, 0x2b,
	0x0b, 0x01, 0x0b, 0x01, 0x0b, 0x01, 0x64, 0x00, 0x64, 0x00, 0x64, 0x00,
	0xf7, 0x1b, 0x01, 0x1b, 0x01, 0x1b, 0x01, 0xac, 0x00, 0xac, 0x00, 0xac,
	0x00, 0x4b, 0x00, 0x4b, 0x00, 0x4b, 0x00, 0x0a, 0x00, 0x60, 0x80, 0xdc,
	0x7d, 0x30, 0x01, 0xee, 0xe6, 0x9a, 0x01, 0x04, 0xd0, 0x0e, 0x08, 0xcb,
	0x9d, 0xb0, 0x00, 0x16, 0xb2, 0x79, 0x35, 0x9e,
};
static const unsigned char by_lz4[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x60, 0x00, 0x00, 0x00, 0x32,
	0x00, 0x00, 0x00, 0x24, 0x11, 0x00, 0x01, 0x00, 0x11, 0x07, 0x02, 0x00,
	0x11, 0x1c, 0x02, 0x00, 0x11, 0x3f, 0x02, 0x00, 0x02, 0x01, 0x00, 0x11,
	0xaf, 0x02, 0x00, 0x11, 0xfc, 0x02, 0x00, 0x80, 0x2b, 0x00, 0x2b, 0x00,
	0x2b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x27, 0x60, 0x00, 0x00, 0x00,
	0x00, 0x0b, 0x01, 0x02, 0x00, 0x20, 0x64, 0x00, 0x02, 0x00, 0x11, 0xf7,
	0x02, 0x00, 0x02, 0x01, 0x00, 0x20, 0x1b, 0x01, 0x02, 0x00, 0xc0, 0xac,
	0x00, 0xac, 0x00, 0xac, 0x00, 0x4b, 0x00, 0x4b, 0x00, 0x4b, 0x00,
};

/* Last four bytes of h5py's chunks of 33 bytes 0, 1, ... and of 50 000 0xff. */
static const unsigned char trailer_33[] = {0x01, 0x11, 0xde, 0x66};
static const unsigned char trailer_ff[] = {0xff, 0xff, 0xff, 0xff};
/* Of 100 001 bytes, byte i being bits 13 to 20 of i * 2654435761. */
static const unsigned char trailer_100001[] = {0xfb, 0x3a, 0x38, 0x35};

/* The first 48 of codec_test_numbers, in uint16. */
static const unsigned char *golden_plain(void)
{
	return codec_test_numbers('u', 2, 48, false);
}

static const struct codec_params none = {.n = 0, .elem_size = 2};

/* Libraries' copies run ahead, in the room that there is. */
static void check_decodes(const struct codec *c, const void *in, size_t in_len,
			  const void *plain, size_t n)
{
	codec_test_decodes_spilling(CODEC_TEST(c, &none, in, in_len, plain, n));
}

/* What damage does; a truncation comes to `cut`. */
static void check_golden(const struct codec *c, const void *in, size_t in_len,
			 unsigned cut)
{
	const struct codec_test t = {c, &none, in, in_len, golden_plain(), 96};

	codec_test_decodes_spilling(&t);
	codec_test_cuts(&t, in_len, cut);
	codec_test_flips(&t, CODEC_TEST_ANY);
}

TEST(golden)
{
	const unsigned refused = CODEC_TEST_REFUSED | CODEC_TEST_NO_ROOM;
	const unsigned fewer = refused | CODEC_TEST_FEWER;

#define GOLDEN(codec, bytes, cut) check_golden(codec, bytes, sizeof bytes, cut)
	GOLDEN(&codec_deflate, by_deflate, refused);
	GOLDEN(&codec_fletcher32, by_fletcher32, fewer);
	GOLDEN(&codec_lzf, by_lzf, fewer);
	GOLDEN(&codec_zstd, by_zstd, refused);
	GOLDEN(&codec_lz4, by_lz4, refused);
#undef GOLDEN
}

/* The loops behind it have a test of their own, codec-vector. */
TEST(shuffle)
{
	for (uint32_t elem = 1; elem <= 50; elem++)
		for (unsigned i = 0; i < 70; i++) {
			size_t n = i < 60 ? i * (elem + 4) / 3
					  : test_random() % 40000;
			const struct codec_params p = {
				.n = 1, .cd = {elem}, .elem_size = 2};
			unsigned char *plain = codec_test_random(n, 1);
			unsigned char *in = malloc(n ? n : 1);

			CHECK(in);
			shuffle_do(SHUFFLE_PLAIN, plain, n, elem, in);
			codec_test_decodes(CODEC_TEST(&codec_shuffle, &p, in, n,
						      plain, n));
			free(plain);
			free(in);
		}
}

static void check_fletcher32(unsigned char *data, size_t n,
			     const unsigned char trailer[4])
{
	unsigned char *in = codec_test_filled(0, n + 4);

	memcpy(in, data, n);
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		for (unsigned i = 0; i < 4; i++)
			in[n + i] = trailer[i ^ swapped];
		codec_test_decodes(CODEC_TEST(&codec_fletcher32, &none, in,
					      n + 4, data, n));
	}
	in[n / 2] ^= 16;
	CHECK_EQ_I(codec_test_try(&codec_fletcher32, &none, in, n + 4, n),
		   -EBADMSG);
	free(in);
}

TEST(fletcher32_values)
{
	static unsigned char data[100001];

	for (unsigned i = 0; i < 33; i++)
		data[i] = (unsigned char)i;
	check_fletcher32(data, 33, trailer_33);
	memset(data, 0xff, 50000);
	check_fletcher32(data, 50000, trailer_ff);
	for (uint64_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 13);
	check_fletcher32(data, sizeof data, trailer_100001);
}

TEST(fletcher32_empty)
{
	codec_test_decodes(
		CODEC_TEST(&codec_fletcher32, &none, "\0\0\0\0", 4, NULL, 0));
	CHECK_EQ_I(codec_test_try(&codec_fletcher32, &none, "\0\0\0", 3, 0),
		   -EBADMSG);
}

/* The lz4 filter's writer: a block that does not shrink is stored raw. */
static size_t lz4_encode(const unsigned char *in, size_t n, uint32_t block,
			 unsigned char *out, size_t room)
{
	size_t at = codec_test_put(out, n, 8, true);

	at += codec_test_put(out + at, block, 4, true);
	for (size_t done = 0; done < n;) {
		size_t m = n - done < block ? n - done : block;
		int k = LZ4_compress_default((const char *)in + done,
					     (char *)out + at + 4, (int)m,
					     (int)(room - at - 4));

		CHECK(k > 0);
		if ((size_t)k >= m) {
			k = (int)m;
			memcpy(out + at + 4, in + done, m);
		}
		at += codec_test_put(out + at, (uint64_t)k, 4, true) +
		      (size_t)k;
		done += m;
	}
	return at;
}

TEST(round_trips)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);

	CHECK(c);
	for (unsigned i = 0; i < 300; i++) {
		size_t n = 1 + test_random() % (i < 200 ? 3000 : 200000);
		unsigned char *in = codec_test_random(n, 1);
		size_t room = n * 2 + 100000, k;
		unsigned char *to = malloc(room);

		CHECK(to);
		k = libdeflate_zlib_compress(c, in, n, to, room);
		check_decodes(&codec_deflate, to, k, in, n);
		k = lzf_compress(in, (unsigned)n, to, (unsigned)room);
		check_decodes(&codec_lzf, to, k, in, n);
		k = ZSTD_compress(to, room, in, n, 1 + (int)(i % 5));
		check_decodes(&codec_zstd, to, k, in, n);
		k = lz4_encode(in, n, 16 + (uint32_t)(test_random() % n), to,
			       room);
		check_decodes(&codec_lz4, to, k, in, n);
		free(in);
		free(to);
	}
	libdeflate_free_compressor(c);
}

/* Our LZF and liblzf's agree on random control bytes too: same bytes, or an
 * error both. */
TEST(lzf_like_liblzf)
{
	for (unsigned i = 0; i < 200000; i++) {
		unsigned char in[64], a[300], b[300];
		size_t n = 1 + test_random() % sizeof in;
		size_t cap = 1 + test_random() % sizeof a;
		size_t len = 0;
		unsigned k;

		for (size_t j = 0; j < n; j++)
			in[j] = test_random() % 3
					? test_random() % 36
					: (unsigned char)test_random();
		memset(a, 0, sizeof a);
		memset(b, 0, sizeof b);
		k = lzf_decompress(in, (unsigned)n, b, (unsigned)cap);
		if (codec_test_decode(&codec_lzf, &none, in, n, a, cap, &len) <
		    0)
			len = 0;
		CHECK_EQ_U(len, k);
		CHECK_MEM(a, b, k);
		for (size_t j = cap; j < sizeof a; j++)
			CHECK_EQ_U(a[j], 0);
	}
}

TEST(deflate_trailing_bytes)
{
	unsigned char in[sizeof by_deflate + 7] = {0};

	memcpy(in, by_deflate, sizeof by_deflate);
	memset(in + sizeof by_deflate, 0xee, 7);
	check_decodes(&codec_deflate, in, sizeof in, golden_plain(), 96);
	in[sizeof by_deflate - 1] ^= 1; /* of the Adler-32 */
	CHECK_EQ_I(codec_test_try(&codec_deflate, &none, in, sizeof in, 96),
		   -EBADMSG);
}

/* 600 bytes whose Adler-32 is 0: sum 65520, then bytes moved ahead until the
 * sum of sums is right too. */
static const unsigned char *adler_zero(void)
{
	static unsigned char d[600];
	uint32_t more;

	for (unsigned i = 0; i < 600; i++)
		d[i] = i % 5 ? 109 : 110;
	more = 65521 - (libdeflate_adler32(1, d, 600) >> 16);
	d[0] += (unsigned char)(more / 599);
	d[599] -= (unsigned char)(more / 599);
	d[599 - more % 599]++;
	d[599]--;
	return d;
}

/* A stream that is cut off must not be completed by our own padding. */
static void check_cut(const unsigned char *plain, size_t n)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(4);
	static unsigned char in[1000];
	struct codec_test t = {&codec_deflate, &none, in, 0, plain, n};

	CHECK(c);
	t.in_len = libdeflate_zlib_compress(c, plain, n, in, sizeof in);
	codec_test_decodes_spilling(&t);
	codec_test_cuts(&t, t.in_len, CODEC_TEST_REFUSED | CODEC_TEST_NO_ROOM);
	libdeflate_free_compressor(c);
}

TEST(deflate_cut)
{
	static const unsigned char zeros[70000];

	CHECK_EQ_U(libdeflate_adler32(1, adler_zero(), 600), 0);
	check_cut(adler_zero(), 600);
	check_cut(zeros, sizeof zeros);
}

TEST(lz4_numbers)
{
	unsigned char in[64] = {0};

	codec_test_put(in + 8, 16, 4, true); /* 0 bytes in blocks of 16 */
	check_decodes(&codec_lz4, in, 12, NULL, 0);
	CHECK_EQ_I(codec_test_try(&codec_lz4, &none, in, 13, 64), -EBADMSG);
	codec_test_put(in, UINT64_MAX, 8, true);
	CHECK_EQ_I(codec_test_try(&codec_lz4, &none, in, 64, 64), -ENOSPC);
	codec_test_put(in, 32, 8, true);
	codec_test_put(in + 8, 0, 4, true); /* blocks of nothing */
	CHECK_EQ_I(codec_test_try(&codec_lz4, &none, in, 64, 64), -EBADMSG);
	codec_test_put(in + 8, 32, 4, true);
	codec_test_put(in + 12, 0, 4, true); /* a block stored in nothing */
	CHECK_EQ_I(codec_test_try(&codec_lz4, &none, in, 16, 64), -EBADMSG);
	codec_test_put(in + 12, 0xffffffff, 4, true);
	CHECK_EQ_I(codec_test_try(&codec_lz4, &none, in, 64, 64), -EBADMSG);
	/* larger than all: one raw block */
	codec_test_put(in + 8, 0xffffffff, 4, true);
	codec_test_put(in + 12, 32, 4, true);
	check_decodes(&codec_lz4, in, 48, in + 16, 32);
}

TEST(zstd_frames)
{
	unsigned char in[2 * sizeof by_zstd + 10], twice[192];
	size_t n = sizeof by_zstd;

	memcpy(twice, golden_plain(), 96);
	memcpy(twice + 96, golden_plain(), 96);
	memcpy(in, by_zstd, n);
	memcpy(in + n, "\x51\x2a\x4d\x18\x02\0\0\0hi", 10); /* skippable */
	memcpy(in + n + 10, by_zstd, n);
	check_decodes(&codec_zstd, in, n + 10, twice, 96);
	check_decodes(&codec_zstd, in, 2 * n + 10, twice, 192);
	memcpy(in + n, "garbage!", 8);
	CHECK_EQ_I(codec_test_try(&codec_zstd, &none, in, n + 8, 192),
		   -EBADMSG);
	in[0] = 0x27; /* the magic number of format 0.7 */
	CHECK_EQ_I(codec_test_try(&codec_zstd, &none, in, n, 96), -EBADMSG);
	CHECK_EQ_I(codec_test_try(&codec_zstd, &none, in, 0, 96), -EBADMSG);
}

int main(void)
{
	RUN(golden);
	RUN(shuffle);
	RUN(fletcher32_values);
	RUN(fletcher32_empty);
	RUN(round_trips);
	RUN(lzf_like_liblzf);
	RUN(deflate_trailing_bytes);
	RUN(deflate_cut);
	RUN(lz4_numbers);
	RUN(zstd_frames);
	codec_thread_cleanup();
	return test_done();
}
