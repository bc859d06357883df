/* SPDX-License-Identifier: BSD-2-Clause */
/* Bitshuffle: what the reference wrote, round trips, every path, damage. */
#include <errno.h>
#include <lz4.h>
#include <zstd.h>

#include "codec/bitplane.h"
#include "codec/codec.h"
#include "test.h"

/*
 * Golden vectors.  The plain bytes are the 45 uint16 values of golden_plain.
 * HDF5 1.10.8 with the plugin of bitshuffle 0.3.5 wrote them as one chunk, in
 * blocks of 16 elements and in one block of the default size; by_zstd was put
 * together of what that version's Python module and libzstd 1.5.4 made of
 * blocks of 16.
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

static const unsigned char *golden_plain(void)
{
	static unsigned char bytes[2 * GOLDEN];

	for (unsigned i = 0; i < GOLDEN; i++) {
		unsigned k = i / 3, v = k % 4 ? 7 * k * k % 300 : 0;

		bytes[2 * i] = v & 255;
		bytes[2 * i + 1] = (unsigned char)(v >> 8);
	}
	return bytes;
}

static uint64_t rng_state = 88172645463325252u;
static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state >> 11;
}

/* Exactly `n` bytes on the heap, so that sanitizers see any step outside. */
static unsigned char *copy_of(const void *from, size_t n)
{
	unsigned char *p = malloc(n ? n : 1);

	CHECK(p);
	if (n)
		memcpy(p, from, n);
	return p;
}

static unsigned char *random_bytes(size_t n)
{
	unsigned char *p = malloc(n ? n : 1);
	unsigned mask = rng() % 2 ? 255 : 3;

	CHECK(p);
	for (size_t i = 0; i < n; i++)
		p[i] = rng() & mask;
	return p;
}

static int decode(const struct codec_params *p, const void *in, size_t in_len,
		  void *out, size_t cap, size_t *len)
{
	unsigned char *stored = copy_of(in, in_len);
	struct error err = {0, ""};
	int r = codec_bitshuffle.decode(p, stored, in_len, out, cap, len, &err);

	CHECK_EQ_I(err.code, r);
	CHECK((r == 0) == !err.text[0]);
	free(stored);
	return r;
}

/* Decodes to just these bytes; with a byte less of room it does not. */
static void check_decodes(const struct codec_params *p, const void *in,
			  size_t in_len, const void *plain, size_t n)
{
	unsigned char *out = malloc(n ? n : 1);
	size_t len = n + 1;

	CHECK(out);
	CHECK_OK(decode(p, in, in_len, out, n, &len));
	CHECK_EQ_U(len, n);
	CHECK_MEM(out, plain, n);
	if (n)
		CHECK_EQ_I(decode(p, in, in_len, out, n - 1, &len), -ENOSPC);
	free(out);
}

TEST(golden)
{
	static const struct codec_params plain = {.n = 4, .cd = {0, 3, 2, 16}},
					 lz4 = {.n = 5, .cd = {0, 3, 2, 16, 2}},
					 defaults = {.n = 3, .cd = {0, 3, 2}},
					 zstd = {.n = 6,
						 .cd = {0, 4, 2, 0, 3, 7}};
	const unsigned char *want = golden_plain();

	check_decodes(&plain, by_plugin, sizeof by_plugin, want, 2 * GOLDEN);
	check_decodes(&lz4, by_plugin_lz4, sizeof by_plugin_lz4, want,
		      2 * GOLDEN);
	check_decodes(&defaults, by_plugin_default, sizeof by_plugin_default,
		      want, 2 * GOLDEN);
	check_decodes(&zstd, by_zstd, sizeof by_zstd, want, 2 * GOLDEN);
}

/* The definition, bit by bit. */
static void shuffle_bits(const unsigned char *in, size_t n, size_t elem,
			 unsigned char *out)
{
	memset(out, 0, n * elem);
	for (size_t i = 0; i < n; i++)
		for (size_t bit = 0; bit < 8 * elem; bit++)
			if (in[i * elem + bit / 8] >> bit % 8 & 1)
				out[bit * (n / 8) + i / 8] |=
					(unsigned char)(1u << i % 8);
}

TEST(paths)
{
	static const unsigned elems[] = {1,  2,  3,  4,  5,   8,    12,
					 16, 33, 64, 65, 300, 2048, 9000};

	for (unsigned e = 0; e < sizeof elems / sizeof *elems; e++)
		for (unsigned round = 0; round < 12; round++) {
			size_t elem = elems[e], most = 60000 / elem / 8 + 1;
			size_t n = 8 * (1 + rng() % most), size = n * elem;
			unsigned char *plain = random_bytes(size);
			unsigned char *bits = malloc(size);
			unsigned char *out = malloc(size);

			CHECK(bits && out);
			shuffle_bits(plain, n, elem, bits);
			for (unsigned path = 0; path <= shuffle_best_path();
			     path++) {
				memset(out, 0xee, size);
				bitplane_undo(path, bits, n, elem, out);
				CHECK_MEM(out, plain, size);
			}
			free(plain);
			free(bits);
			free(out);
		}
}

static size_t put_be(unsigned char *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(v >> 8 * (bytes - 1 - i));
	return bytes;
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
	put_be(to, n, 4);
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
		at += put_be(out, size, 8);
		at += put_be(out + at, (uint64_t)block * elem, 4);
	}
	for (;;) {
		size_t left = (size - done) / elem / 8 * 8;
		size_t n = left < block ? left : block;

		if (!n)
			break;
		shuffle_bits(plain + done, n, elem, bits);
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

	for (unsigned round = 0; round < 400; round++) {
		uint32_t elem = 1 + (uint32_t)(rng() % (round % 9 ? 9 : 600));
		uint32_t block = 8 * (1 + (uint32_t)(rng() % 300));
		uint32_t c = compressions[rng() % 3];
		struct codec_params p = {.n = 5 + round % 2,
					 .cd = {0, 3, elem, block, c, 9}};
		size_t size = elem * (rng() % (20000 / elem + 9)), stored;
		unsigned char *plain = random_bytes(size);
		unsigned char *in =
			encode(elem, block, c, plain, size, &stored);

		if (c) /* the header's block size counts */
			p.cd[3] = 8 * (uint32_t)(rng() % 9);
		check_decodes(&p, in, stored, plain, size);
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

		check_decodes(&p, in, stored, plain, size);
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
					put_be(in + 8, 0, 4);
				check_decodes(&p, in, stored, plain, size);
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
		{{.n = 2, .cd = {0, 3}}, -EBADMSG},
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
		unsigned char out[64];
		size_t len;

		CHECK_EQ_I(codec_bitshuffle.check(&rows[i].p, &err), rows[i].r);
		CHECK_EQ_I(err.code, rows[i].r);
		if (rows[i].r < 0)
			CHECK_EQ_I(decode(&rows[i].p, by_plugin, 64, out, 64,
					  &len),
				   -EBADMSG);
	}
}

/* Change one number of the LZ4 vector's framing. */
static int decode_changed(size_t at, uint64_t v, unsigned bytes)
{
	static const struct codec_params p = {.n = 5, .cd = {0, 3, 2, 16, 2}};
	unsigned char *in = copy_of(by_plugin_lz4, sizeof by_plugin_lz4);
	unsigned char out[4 * GOLDEN];
	size_t len;
	int r;

	put_be(in + at, v, bytes);
	r = decode(&p, in, sizeof by_plugin_lz4, out, sizeof out, &len);
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

static void check_damage(const struct codec_params *p, const unsigned char *in,
			 size_t in_len)
{
	unsigned char *out = malloc(2 * GOLDEN);
	unsigned char *more = calloc(in_len + 3, 1);
	size_t len;
	int r;

	CHECK(out && more);
	for (size_t n = 0; n < in_len; n++)
		CHECK(decode(p, in, n, out, 2 * GOLDEN, &len) < 0);
	memcpy(more, in, in_len);
	for (size_t n = 1; n <= 3; n++)
		CHECK(decode(p, more, in_len + n, out, 2 * GOLDEN, &len) < 0);
	for (size_t bit = 0; bit < 8 * in_len; bit++) {
		more[bit / 8] ^= (unsigned char)(1u << bit % 8);
		r = decode(p, more, in_len, out, 2 * GOLDEN, &len);
		CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
		more[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(more);
	free(out);
}

TEST(damage)
{
	static const struct codec_params lz4 = {.n = 5, .cd = {0, 3, 2, 16, 2}},
					 zstd = {.n = 5,
						 .cd = {0, 4, 2, 16, 3}},
					 plain = {.n = 4, .cd = {0, 3, 2, 16}};
	unsigned char out[2 * GOLDEN];
	size_t len;

	check_damage(&lz4, by_plugin_lz4, sizeof by_plugin_lz4);
	check_damage(&zstd, by_zstd, sizeof by_zstd);
	CHECK_EQ_I(decode(&plain, by_plugin, 89, out, sizeof out, &len),
		   -EBADMSG);
	CHECK_OK(decode(&plain, NULL, 0, out, sizeof out, &len));
	CHECK_EQ_U(len, 0);
}

int main(void)
{
	RUN(golden);
	RUN(paths);
	RUN(round_trips);
	RUN(large_blocks);
	RUN(default_blocks);
	RUN(parameters);
	RUN(headers);
	RUN(damage);
	codec_thread_cleanup();
	return test_done();
}
