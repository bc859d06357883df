/* SPDX-License-Identifier: BSD-2-Clause */
/* Bitshuffle: what the reference wrote, round trips, damage. */
#include <lz4.h>
#include <zstd.h>

#include "codec_test.h"

/*
 * Golden vectors.  The plain bytes are the first 45 of codec_test_numbers, in
 * uint16.  HDF5 1.10.8 with the plugin of bitshuffle 0.3.5 wrote them as one
 * chunk, in blocks of 16 elements and in one block of the default size; by_zstd
 * was put together of what that version's Python module and libzstd 1.5.4 made
 * of blocks of 16.
 */
static const unsigned char by_plugin[] = {
	0x38, 0x8e, 0x38, 0x8e, 0xf8, 0x8f, 0xc0, 0x8f, 0xc0, 0x0f, 0x00, 0x8e,
	0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe3, 0x38, 0xe3, 0x38,
	0x1f, 0xc0, 0xff, 0x38, 0x1c, 0x00, 0xff, 0xc0, 0x1c, 0xc0, 0x1f, 0x00,
	0x00, 0x38, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x8e, 0x8e, 0x0f, 0x80, 0x8e, 0x0f, 0x0f, 0x0e,
	0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1b, 0x01, 0x1b, 0x01,
	0xac, 0x00, 0xac, 0x00, 0xac, 0x00,
};
static const unsigned char by_plugin_lz4[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5a, 0x00, 0x00, 0x00, 0x20,
	0x00, 0x00, 0x00, 0x1b, 0xf6, 0x02, 0x38, 0x8e, 0x38, 0x8e, 0xf8, 0x8f,
	0xc0, 0x8f, 0xc0, 0x0f, 0x00, 0x8e, 0x00, 0x00, 0x00, 0x80, 0x00, 0x01,
	0x00, 0x50, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1d, 0xf4,
	0x04, 0xe3, 0x38, 0xe3, 0x38, 0x1f, 0xc0, 0xff, 0x38, 0x1c, 0x00, 0xff,
	0xc0, 0x1c, 0xc0, 0x1f, 0x00, 0x00, 0x38, 0x00, 0x01, 0x00, 0x50, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0xf0, 0x01, 0x8e, 0x8e,
	0x0f, 0x80, 0x8e, 0x0f, 0x0f, 0x0e, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x1b, 0x01, 0x1b, 0x01, 0xac, 0x00, 0xac, 0x00, 0xac, 0x00,
};
static const unsigned char by_plugin_default[] = {
	0x38, 0x8e, 0xe3, 0x38, 0x8e, 0x38, 0x8e, 0xe3, 0x38, 0x8e, 0xf8, 0x8f,
	0x1f, 0xc0, 0x0f, 0xc0, 0x8f, 0xff, 0x38, 0x80, 0xc0, 0x0f, 0x1c, 0x00,
	0x8e, 0x00, 0x8e, 0xff, 0xc0, 0x0f, 0x00, 0x00, 0x1c, 0xc0, 0x0f, 0x00,
	0x80, 0x1f, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x38, 0x80, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1b, 0x01, 0x1b, 0x01,
	0xac, 0x00, 0xac, 0x00, 0xac, 0x00,
};
static const unsigned char by_zstd[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5a, 0x00, 0x00, 0x00, 0x20,
	0x00, 0x00, 0x00, 0x20, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x20, 0xbd, 0x00,
	0x00, 0x88, 0x38, 0x8e, 0x38, 0x8e, 0xf8, 0x8f, 0xc0, 0x8f, 0xc0, 0x0f,
	0x00, 0x8e, 0x00, 0x00, 0x00, 0x80, 0x00, 0x01, 0x00, 0x3b, 0xb0, 0x04,
	0x00, 0x00, 0x00, 0x22, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x20, 0xcd, 0x00,
	0x00, 0x98, 0xe3, 0x38, 0xe3, 0x38, 0x1f, 0xc0, 0xff, 0x38, 0x1c, 0x00,
	0xff, 0xc0, 0x1c, 0xc0, 0x1f, 0x00, 0x00, 0x38, 0x00, 0x01, 0x00, 0x0f,
	0x10, 0x06, 0x00, 0x00, 0x00, 0x19, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x10,
	0x81, 0x00, 0x00, 0x8e, 0x8e, 0x0f, 0x80, 0x8e, 0x0f, 0x0f, 0x0e, 0x80,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1b, 0x01, 0x1b, 0x01, 0xac,
	0x00, 0xac, 0x00, 0xac, 0x00,
};

#define GOLDEN 45u
#define CODEC &codec_bitshuffle

/* Noise of eight bits or of two; the caller frees it. */
static unsigned char *random_bytes(size_t n)
{
	unsigned char *p = codec_test_filled(0, n);
	unsigned mask = test_random() % 2 ? 255 : 3;

	for (size_t i = 0; i < n; i++)
		p[i] = test_random() & mask;
	return p;
}

TEST(golden)
{
	static const struct codec_params plain = {.n = 4, .cd = {0, 3, 2, 16}},
					 lz4 = {.n = 5, .cd = {0, 3, 2, 16, 2}},
					 defaults = {.n = 3, .cd = {0, 3, 2}},
					 zstd = {.n = 6,
						 .cd = {0, 4, 2, 0, 3, 7}};
	/* The user's alone: the type says how large an element is. */
	static const struct codec_params user_plain = {.n = 1,
						       .cd = {16},
						       .elem_size = 2},
					 user_lz4 = {.n = 2,
						     .cd = {16, 2},
						     .elem_size = 2},
					 user_none = {.n = 0, .elem_size = 2};
	const void *want = codec_test_numbers('u', 2, GOLDEN, false);
	const struct codec_test rows[] = {
		{CODEC, &plain, by_plugin, sizeof by_plugin, want, 2 * GOLDEN},
		{CODEC, &lz4, by_plugin_lz4, sizeof by_plugin_lz4, want,
		 2 * GOLDEN},
		{CODEC, &defaults, by_plugin_default, sizeof by_plugin_default,
		 want, 2 * GOLDEN},
		{CODEC, &zstd, by_zstd, sizeof by_zstd, want, 2 * GOLDEN},
		{CODEC, &user_plain, by_plugin, sizeof by_plugin, want,
		 2 * GOLDEN},
		{CODEC, &user_lz4, by_plugin_lz4, sizeof by_plugin_lz4, want,
		 2 * GOLDEN},
		{CODEC, &user_none, by_plugin_default, sizeof by_plugin_default,
		 want, 2 * GOLDEN},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		codec_test_decodes(&rows[i]);
}

/* One block behind its size; how many bytes. */
static size_t put_block(unsigned char *to, size_t cap, uint32_t compression,
			const unsigned char *bits, size_t size)
{
	size_t n;

	if (compression == 2)
		n = (size_t)LZ4_compress_default((const char *)bits,
						 (char *)to + 4, (int)size,
						 (int)(cap - 4));
	else
		n = ZSTD_compress(to + 4, cap - 4, bits, size, 1);
	codec_test_put(to, n, 4, true);
	return n + 4;
}

/* What the filter makes of `size` bytes; the caller frees it. */
static unsigned char *encode(uint32_t elem, uint32_t block,
			     uint32_t compression, const unsigned char *plain,
			     size_t size, size_t *stored)
{
	size_t cap = 3 * size + 64 * (size / elem / 8) + 1000, at = 0, done = 0;
	unsigned char *out = malloc(cap), *bits = malloc(size ? size : 1);

	CHECK(out && bits);
	if (compression) {
		at += codec_test_put(out, size, 8, true);
		at += codec_test_put(out + at, (uint64_t)block * elem, 4, true);
	}
	for (;;) {
		size_t left = (size - done) / elem / 8 * 8;
		size_t n = left < block ? left : block;

		if (!n)
			break;
		codec_test_shuffle_bits(plain + done, n, elem, bits);
		if (compression) {
			at += put_block(out + at, cap - at, compression, bits,
					n * elem);
		} else {
			memcpy(out + at, bits, n * elem);
			at += n * elem;
		}
		done += n * elem;
	}
	if (size > done)
		memcpy(out + at, plain + done, size - done);
	*stored = at + size - done;
	free(bits);
	return out;
}

TEST(round_trips)
{
	static const uint32_t compressions[] = {0, 2, 3};

	for (unsigned round = 0; round < test_rounds(400); round++) {
		uint32_t elem =
			1 + (uint32_t)(test_random() % (round % 9 ? 9 : 600));
		uint32_t block = 8 * (1 + (uint32_t)(test_random() % 300));
		uint32_t c = compressions[test_random() % 3];
		struct codec_params p = {.n = 5 + round % 2,
					 .cd = {0, 3, elem, block, c, 9}};
		size_t size = elem * (test_random() % (20000 / elem + 9));
		size_t stored;
		unsigned char *plain = random_bytes(size);
		unsigned char *in =
			encode(elem, block, c, plain, size, &stored);

		if (c) /* the header's block size counts */
			p.cd[3] = 8 * (uint32_t)(test_random() % 9);
		codec_test_decodes(
			CODEC_TEST(CODEC, &p, in, stored, plain, size));
		free(in);
		free(plain);
	}
}

/* Chunks in one block: larger than what is kept on the stack. */
TEST(large_blocks)
{
	for (uint32_t c = 2; c <= 3; c++) {
		struct codec_params p = {.n = 5, .cd = {0, 3, 4, 0, c}};
		size_t size = 200000, stored;
		unsigned char *plain = random_bytes(size);
		unsigned char *in =
			encode(4, 1u << 24, c, plain, size, &stored);

		codec_test_decodes(
			CODEC_TEST(CODEC, &p, in, stored, plain, size));
		free(in);
		free(plain);
	}
}

/* The size of a block when nobody says it: element sizes and their blocks. */
TEST(default_blocks)
{
	static const uint32_t sizes[][2] = {
		{1, 8192}, {2, 4096}, {3, 2728}, {4, 2048},   {8, 1024},
		{12, 680}, {64, 128}, {65, 128}, {1000, 128}, {9000, 128},
	};

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (uint32_t c = 0; c <= 2; c += 2)
			for (uint32_t n = 3; n <= 5; n++) {
				uint32_t elem = sizes[i][0];
				struct codec_params p = {
					.n = c ? 5 : n,
					.cd = {0, 3, elem, 0, c}};
				size_t size = 2 * elem * sizes[i][1] + 9 * elem,
				       stored;
				unsigned char *plain = random_bytes(size), *in;

				in = encode(elem, sizes[i][1], c, plain, size,
					    &stored);
				if (c) /* a header that leaves it out, too */
					codec_test_put(in + 8, 0, 4, true);
				codec_test_decodes(CODEC_TEST(
					CODEC, &p, in, stored, plain, size));
				free(in);
				free(plain);
			}
}

TEST(parameters)
{
	static const struct {
		struct codec_params p;
		int r;
	} rows[] = {
		{{.n = 0}, -EBADMSG},
		{{.n = 2, .cd = {0, 3}}, -EBADMSG}, /* size not known */
		{{.n = 2, .cd = {0, 3}, .elem_size = 2}, 0},
		{{.n = 2, .cd = {12, 2}, .elem_size = 2}, -EBADMSG},
		{{.n = 2, .cd = {0, 1}, .elem_size = 2}, -EBADMSG},
		{{.n = 3, .cd = {0, 3, 0}}, -EBADMSG},
		{{.n = 3, .cd = {0, 3, 2}}, 0},
		{{.n = 4, .cd = {0, 3, 2, 12}}, -EBADMSG},
		{{.n = 4, .cd = {0, 3, 2, 0xfffffff8}}, 0},
		{{.n = 5, .cd = {0, 3, 2, 8, 0}}, 0},
		{{.n = 5, .cd = {0, 3, 2, 8, 1}}, -EBADMSG},
		{{.n = 5, .cd = {0, 3, 2, 8, 3}}, 0},
		{{.n = 5, .cd = {0, 3, 2, 8, 4}}, -EBADMSG},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = {0, ""};

		CHECK_EQ_I(codec_bitshuffle.check(&rows[i].p, &err), rows[i].r);
		CHECK_EQ_I(err.code, rows[i].r);
		if (rows[i].r < 0)
			CHECK_EQ_I(codec_test_try(CODEC, &rows[i].p, by_plugin,
						  64, 64),
				   -EBADMSG);
	}
}

/* Change one number of the LZ4 vector's framing. */
static int decode_changed(size_t at, uint64_t v, unsigned bytes)
{
	static const struct codec_params p = {.n = 5, .cd = {0, 3, 2, 16, 2}};
	unsigned char *in =
		codec_test_copy(by_plugin_lz4, sizeof by_plugin_lz4);
	int r;

	codec_test_put(in + at, v, bytes, true);
	r = codec_test_try(CODEC, &p, in, sizeof by_plugin_lz4, 4 * GOLDEN);
	free(in);
	return r;
}

TEST(headers)
{
	CHECK_OK(decode_changed(8, 32, 4));
	CHECK_EQ_I(decode_changed(0, UINT64_MAX, 8), -ENOSPC);
	CHECK_EQ_I(decode_changed(0, 2 * GOLDEN + 2, 8), -EBADMSG);
	CHECK_EQ_I(decode_changed(0, 2 * GOLDEN - 1, 8), -EBADMSG);
	CHECK_EQ_I(decode_changed(0, 0, 8), -EBADMSG);
	CHECK_EQ_I(decode_changed(8, 0, 4), -EBADMSG); /* other blocks */
	CHECK_EQ_I(decode_changed(8, 24, 4), -EBADMSG);
	CHECK_EQ_I(decode_changed(8, 0xfffffff0, 4), -EBADMSG);
	CHECK_EQ_I(decode_changed(12, UINT32_MAX, 4), -EBADMSG);
	CHECK_EQ_I(decode_changed(12, 0, 4), -EBADMSG);
}

static void check_damage(const struct codec_params *p, const void *in,
			 size_t in_len)
{
	const struct codec_test t = {CODEC,
				     p,
				     in,
				     in_len,
				     codec_test_numbers('u', 2, GOLDEN, false),
				     2 * GOLDEN};

	codec_test_damage(&t, in_len, CODEC_TEST_REFUSED, CODEC_TEST_ANY);
	for (size_t n = 1; n <= 3; n++)
		codec_test_tail(&t, n, 0);
}

TEST(damage)
{
	static const struct codec_params lz4 = {.n = 5, .cd = {0, 3, 2, 16, 2}},
					 zstd = {.n = 5,
						 .cd = {0, 4, 2, 16, 3}},
					 plain = {.n = 4, .cd = {0, 3, 2, 16}};

	check_damage(&lz4, by_plugin_lz4, sizeof by_plugin_lz4);
	check_damage(&zstd, by_zstd, sizeof by_zstd);
	CHECK_EQ_I(codec_test_try(CODEC, &plain, by_plugin, 89, 2 * GOLDEN),
		   -EBADMSG);
	codec_test_decodes(CODEC_TEST(CODEC, &plain, NULL, 0, NULL, 0));
}

int main(void)
{
	RUN(golden);
	RUN(round_trips);
	RUN(large_blocks);
	RUN(default_blocks);
	RUN(parameters);
	RUN(headers);
	RUN(damage);
	codec_thread_cleanup();
	return test_done();
}
