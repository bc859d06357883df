/* SPDX-License-Identifier: BSD-2-Clause */
/* szip: chunks of HDF5, round trips with libaec's encoder, damage. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"
#include "test.h"

#if HAVE_SZIP
#include <errno.h>
#include <libaec.h>

/*
 * Golden vectors, written by HDF5 1.10.8 (libaec 1.0.6) from golden_plain:
 * "nn" and "ec" are H5Pset_szip's two ways of coding, "be16" is big-endian,
 * "u12" and "u20" have 12 and 20 bits of precision.
 */
static const unsigned char nn_u16[] = {
	0x9c, 0x00, 0x00, 0x00, 0x30, 0x00, 0x0d, 0xc0, 0x61, 0x80, 0x2c, 0x70,
	0x1e, 0x1e, 0x01, 0xa0, 0x00, 0xc0, 0x00, 0x10, 0x70, 0xe0, 0x78, 0x01,
	0xa0, 0x01, 0x80, 0x01, 0xcf, 0x84, 0x00, 0xa8, 0x00, 0x00, 0x38, 0x00,
	0x00, 0x70, 0x71, 0x2c, 0x00, 0x0d, 0x00, 0x0d, 0xdf, 0x01, 0xf8, 0x00,
	0x5a, 0x00, 0x00, 0x00, 0x03, 0x00, 0x8d, 0xe0, 0x70, 0x30, 0x03, 0xa0,
	0x00, 0x40, 0xd0, 0xe0, 0x78, 0x2a, 0x00, 0x7c, 0x00, 0x02, 0x80, 0x6f,
	0xc0, 0xe0, 0xe1, 0xa0, 0x02, 0x00, 0xc0, 0x39, 0xfe, 0x80, 0x17, 0x00,
	0x00, 0x06, 0x00, 0x57, 0xfc, 0x08, 0x80, 0x0f, 0x00, 0x0d, 0x5c, 0x00,
	0xfc, 0x03, 0xc0, 0x00, 0x00,
};
static const unsigned char ec_u8[] = {
	0x40, 0x00, 0x00, 0x00, 0xbf, 0xaa, 0x22, 0x3c, 0x20, 0x00, 0xee, 0xf9,
	0x99, 0xff, 0xe0, 0x01, 0x78, 0x95, 0x55, 0xe4, 0x9d, 0x6b, 0xa5, 0x28,
	0xb5, 0xac, 0x00, 0x00, 0xc6, 0x30, 0x03, 0x55, 0xe4, 0x92, 0x49, 0x24,
	0x0f, 0x7b, 0xc0, 0x00, 0x4e, 0x73, 0x42, 0x10, 0xb5, 0xae, 0xf5, 0x42,
	0x10, 0xab, 0xc1, 0x00, 0x07, 0x77, 0x44, 0x4b, 0xbb, 0x00, 0x07,
};
static const unsigned char nn_be16[] = {
	0x80, 0x00, 0x00, 0x00, 0x20, 0x00, 0x0c, 0x49, 0xe0, 0x30, 0x04, 0x80,
	0xe3, 0x80, 0xee, 0x7d, 0x00, 0x0b, 0xdb, 0x0c, 0x00, 0xd0, 0x1e, 0x07,
	0x02, 0x10, 0x00, 0x77, 0x0a, 0xa0, 0x00, 0x5b, 0xe0, 0xc0, 0x00, 0xd0,
	0x1e, 0x38, 0x1b, 0x80, 0x04, 0x0e, 0x76, 0x80, 0x00, 0x6d, 0xb0, 0x30,
	0x03, 0xa0, 0x68, 0x1c, 0x01, 0x00, 0x1c, 0xe2, 0xa8, 0x00, 0x3e, 0xb8,
	0x18, 0x06, 0x82, 0xc1, 0xc0, 0x40, 0x1c, 0x77, 0xd0, 0x00, 0x5c,
};
static const unsigned char nn_u12[] = {
	0x78, 0x00, 0x00, 0x00, 0x40, 0x00, 0xf8, 0xe0, 0x20, 0x70, 0x20,
	0x1d, 0x30, 0x00, 0x1f, 0xe0, 0x50, 0x00, 0x00, 0x38, 0x57, 0xe7,
	0x03, 0xa0, 0x00, 0xd0, 0x00, 0x42, 0x00, 0x0a, 0xae, 0x00, 0x01,
	0xfe, 0x01, 0x60, 0x00, 0x00, 0x00, 0xe0, 0xc9, 0x8e, 0x03, 0x84,
	0x00, 0x37, 0x00, 0x0b, 0x40, 0x01, 0xb5, 0xc0, 0x01, 0xfe, 0x01,
	0xa0, 0x00, 0x00, 0x00, 0xc0, 0x97, 0x87, 0x03, 0x88, 0x01, 0x50,
	0x03, 0xe0, 0x03, 0x53, 0x00, 0x3f, 0xc0, 0x20, 0x00, 0x00,
};
static const unsigned char nn_f32[] = {
	0xc8, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x04, 0x00, 0x08, 0x00, 0x10,
	0x00, 0x20, 0x00, 0x40, 0x00, 0x80, 0x06, 0xf0, 0x08, 0x00, 0x00, 0x40,
	0x01, 0xb0, 0x0e, 0x00, 0x01, 0xe0, 0x00, 0x3f, 0xc0, 0x01, 0xe0, 0x00,
	0x00, 0x1c, 0x01, 0xd0, 0xe0, 0x18, 0x01, 0xdf, 0x00, 0x3d, 0xc0, 0x24,
	0x1c, 0x70, 0x28, 0x0f, 0xc0, 0x00, 0xcf, 0x81, 0xfe, 0x00, 0x63, 0x86,
	0xe0, 0x01, 0x43, 0xb2, 0x30, 0x80, 0x08, 0xd8, 0x0c, 0x00, 0x68, 0x34,
	0x38, 0x1a, 0x00, 0x78, 0xd0, 0x0c, 0x10, 0x0d, 0x0e, 0x0b, 0x00, 0x18,
	0x07, 0xfc, 0x00, 0x05, 0x00, 0xc2, 0x00, 0x03, 0x13, 0x3e, 0x42, 0x86,
	0x01, 0x82, 0xc3, 0x81, 0x80, 0x04, 0xa1, 0xbe, 0x0e, 0x46, 0x00, 0x0c,
	0x25, 0x0b, 0x37, 0x00, 0xc0, 0x14, 0x2c, 0x38, 0x18, 0x00, 0x21, 0xc4,
	0xe8, 0x07, 0x98, 0x00, 0x00,
};
static const unsigned char ec_f64[] = {
	0x40, 0x01, 0x00, 0x00, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x81, 0x02,
	0x04, 0x3c, 0x02, 0x02, 0x02, 0x00, 0x00, 0x00, 0x03, 0x83, 0xf0, 0x70,
	0x40, 0x40, 0x00, 0x00, 0x00, 0x00, 0x78, 0x08, 0x08, 0x08, 0x00, 0x00,
	0x00, 0x0b, 0x0f, 0x61, 0x60, 0x00, 0x00, 0x01, 0xc1, 0xc1, 0xc1, 0x78,
	0x00, 0xf8, 0x00, 0x00, 0x00, 0x05, 0xea, 0x88, 0x80, 0x06, 0x66, 0x66,
	0x64, 0x93, 0xc7, 0x8f, 0x7b, 0xc0, 0x00, 0x17, 0x08, 0x88, 0xf9, 0x4a,
	0xf7, 0x80, 0x00, 0x06, 0x12, 0x4f, 0x17, 0x94, 0xa5, 0x00, 0x01, 0x0e,
	0xe0, 0xe0, 0xb2, 0xb2, 0xb2, 0xdc, 0xdc, 0xdd, 0x38, 0x00, 0x1f, 0x00,
	0x10, 0x00, 0xdc, 0x92, 0x48, 0x00, 0x00, 0x00, 0x00, 0x06, 0x24, 0x9e,
	0x40, 0x00, 0x00, 0x00, 0x00, 0x31, 0x24, 0xf8, 0x00, 0x00, 0x00, 0x00,
	0x06, 0x24, 0x9e, 0x40, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x02, 0x02, 0x02,
	0x02, 0x02, 0x02, 0x02, 0x04, 0xe0, 0x1f, 0x00, 0x00, 0x00,
};
static const unsigned char nn_i64[] = {
	0x80, 0x01, 0x00, 0x00, 0x60, 0x1b, 0x80, 0xc3, 0x00, 0xd7, 0x1c,
	0x10, 0x7c, 0x00, 0xe8, 0x00, 0xfd, 0x87, 0x03, 0x80, 0x1a, 0x00,
	0x28, 0x00, 0x50, 0x7e, 0x06, 0xa0, 0x16, 0x00, 0x81, 0xa0, 0x38,
	0x0f, 0x05, 0xc0, 0x0f, 0x80, 0x1b, 0xd8, 0x38, 0x38, 0x00, 0xc0,
	0x02, 0x80, 0x00, 0x00, 0x11, 0x9a, 0x3c, 0x8d, 0xc0, 0x00, 0x20,
	0x00, 0x10, 0x00, 0x08, 0x00, 0x04, 0x00, 0x02, 0x00, 0x01,
};
static const unsigned char nn_u20[] = {
	0xc0, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00, 0x6e, 0x03, 0x0c, 0x00,
	0xd7, 0x1c, 0x10, 0x7c, 0x00, 0xe8, 0x00, 0xf3, 0xe7, 0x03, 0x80,
	0x03, 0x40, 0x01, 0x08, 0x00, 0x1d, 0xc3, 0x83, 0x54, 0x00, 0x0b,
	0x00, 0x03, 0x40, 0x3c, 0x70, 0x1c, 0x20, 0x6e, 0x00, 0x16, 0x80,
	0x03, 0x66, 0xc0, 0xe0, 0x70, 0x03, 0xa0, 0x00, 0x40, 0x00,
};

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

/* What was coded: `n` numbers of `width` bytes, three of each value, kind 'u'
 * or 'f', the most significant byte first if `big`. */
static unsigned char *golden_plain(char kind, unsigned width, size_t n,
				   bool big)
{
	unsigned char *plain = malloc(n * width);

	CHECK(plain);
	for (size_t i = 0; i < n; i++) {
		unsigned char *to = plain + i * width;
		uint64_t k = i / 3, v = 7 * k * k % (width > 1 ? 300 : 100);
		double d;
		float f;

		v = k % 4 ? v : 0;
		d = (double)v;
		f = (float)v;
		for (unsigned j = 0; j < width; j++)
			to[big ? width - 1 - j : j] = v >> 8 * j & 255;
		if (kind == 'f' && width == 8)
			memcpy(to, &d, 8);
		else if (kind == 'f')
			memcpy(to, &f, 4);
	}
	return plain;
}
#define CODEC codec_szip

static int decode(const struct codec_params *p, const void *in, size_t in_len,
		  void *out, size_t cap, size_t *len)
{
	unsigned char *stored = copy_of(in, in_len);
	struct error err = {0, ""};
	int r = CODEC.decode(p, stored, in_len, out, cap, len, &err);

	CHECK_EQ_I(err.code, r);
	CHECK((r == 0) == (err.text[0] == 0));
	CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
	free(stored);
	return r;
}

/* Decodes to `plain` with exactly the room, with more, and not with less. */
static void check_decodes(const struct codec_params *p, const void *in,
			  size_t in_len, const void *plain, size_t n)
{
	unsigned char *out = malloc(n ? n : 1), *more = malloc(n + 100);
	size_t len = 12345;

	CHECK(out && more);
	memset(more, 0xa5, n + 100);
	CHECK_OK(decode(p, in, in_len, out, n, &len));
	CHECK_EQ_U(len, n);
	CHECK_MEM(out, plain, n);
	CHECK_OK(decode(p, in, in_len, more, n + 100, &len));
	CHECK_EQ_U(len, n);
	CHECK_MEM(more, plain, n);
	for (size_t i = n; i < n + 100; i++)
		CHECK_EQ_U(more[i], 0xa5);
	free(out);
	if (n) {
		out = malloc(n - 1 ? n - 1 : 1);
		CHECK(out);
		CHECK_EQ_I(decode(p, in, in_len, out, n - 1, &len), -ENOSPC);
		free(out);
	}
	free(more);
}

/* Every truncation, every flipped bit, something behind: no step outside, and
 * what a truncation leaves is right. */
static void check_damage(const struct codec_params *p, const unsigned char *in,
			 size_t in_len, const unsigned char *plain, size_t n)
{
	unsigned char *out = malloc(n), *bad = copy_of(in, in_len);
	unsigned char *tail = malloc(in_len + 300);
	size_t len;

	CHECK(out && tail);
	for (size_t cut = 0; cut < in_len; cut++)
		if (decode(p, in, cut, out, n, &len) == 0)
			CHECK(len == n && !memcmp(out, plain, n));
	for (size_t bit = 0; bit < in_len * 8; bit++) {
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
		if (decode(p, bad, in_len, out, n, &len) == 0)
			CHECK(len <= n);
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	memcpy(tail, in, in_len);
	memset(tail + in_len, 0x5a, 300);
	CHECK_EQ_I(decode(p, tail, in_len + 300, out, n, &len), -EBADMSG);
	free(out);
	free(bad);
	free(tail);
}

#define GOLDEN(bytes, kind, width, count, big, ...)                           \
	do {                                                                  \
		const struct codec_params p = {.n = 4, .cd = {__VA_ARGS__}};  \
		unsigned char *plain = golden_plain(kind, width, count, big); \
                                                                              \
		check_decodes(&p, bytes, sizeof bytes, plain, count *width);  \
		check_damage(&p, bytes, sizeof bytes, plain, count *width);   \
		free(plain);                                                  \
	} while (0)

TEST(golden)
{
	GOLDEN(nn_u16, 'u', 2, 78, false, 169, 8, 16, 13);
	GOLDEN(ec_u8, 'u', 1, 64, false, 141, 16, 8, 64);
	GOLDEN(nn_be16, 'u', 2, 64, true, 177, 4, 16, 64);
	GOLDEN(nn_u12, 'u', 2, 60, false, 169, 10, 12, 15);
	GOLDEN(nn_f32, 'f', 4, 50, false, 169, 4, 32, 10);
	GOLDEN(ec_f64, 'f', 8, 40, false, 141, 8, 64, 20);
	GOLDEN(nn_i64, 'u', 8, 48, false, 169, 8, 64, 48);
	GOLDEN(nn_u20, 'u', 4, 48, false, 169, 8, 20, 48);
}

/*
 * The way in, as szip's: shuffle words, fill up lines with their last pixel
 * (with 0 unless neighbours are looked at), code.
 */
static unsigned char *encode(const struct codec_params *p,
			     const unsigned char *plain, size_t n, size_t *len)
{
	uint32_t bits = p->cd[2], block = p->cd[1], line = p->cd[3];
	size_t word = bits == 32 || bits == 64 ? bits / 8 : 1;
	size_t pixel = word > 1 || bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
	size_t count = n / pixel, lines = (count + line - 1) / line;
	size_t width = (line + block - 1) / block * block;
	unsigned char *in = calloc(lines * width, pixel);
	size_t room = lines * width * pixel * 2 + 1000;
	unsigned char *out = malloc(room);
	struct aec_stream s = {
		.bits_per_sample = word > 1 ? 8 : bits,
		.block_size = block,
		.rsi = (unsigned)(width / block),
		.flags = AEC_NOT_ENFORCE | (p->cd[0] & 16 ? AEC_DATA_MSB : 0) |
			 (p->cd[0] & 32 ? AEC_DATA_PREPROCESS : 0),
		.next_in = in,
		.avail_in = lines * width * pixel,
		.next_out = out + 4,
		.avail_out = room - 4,
	};

	CHECK(in && out);
	for (size_t i = 0; i < lines * width; i++) {
		size_t from = i / width * line + i % width;

		if (i % width >= line || from >= count) {
			if (p->cd[0] & 32 && i)
				memcpy(in + i * pixel, in + (i - 1) * pixel,
				       pixel);
			continue;
		}
		if (word > 1)
			from = from % (n / word) * word + from / (n / word);
		memcpy(in + i * pixel, plain + from * pixel, pixel);
	}
	for (unsigned i = 0; i < 4; i++)
		out[i] = n >> 8 * i & 255;
	CHECK_OK(aec_buffer_encode(&s));
	*len = 4 + s.total_out;
	free(in);
	return out;
}

/* `n` bytes of pixels that have no more bits than they may. */
static unsigned char *random_pixels(const struct codec_params *p, size_t n)
{
	uint32_t bits = p->cd[2];
	size_t pixel = bits > 32 ? 8 : bits > 16 ? 4 : bits > 8 ? 2 : 1;
	unsigned char *plain = malloc(n + 8);
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
	uint64_t kind = rng() % 5, v = 0;

	CHECK(plain);
	for (size_t i = 0; i < n; i += pixel) {
		if (kind == 1)
			v = rng() << 32 ^ rng();
		else if (kind == 2)
			v += rng() % 5 - 2;
		else if (kind == 3)
			v = rng() % 50 ? 0 : rng();
		else if (kind == 4)
			v = i / pixel % 200 < 100 ? rng() % 3 : rng();
		v &= mask;
		for (size_t j = 0; j < pixel; j++)
			plain[i + (p->cd[0] & 16 ? pixel - 1 - j : j)] =
				v >> 8 * j & 255;
	}
	return plain;
}

TEST(round_trips)
{
	for (unsigned i = 0; i < 1500; i++) {
		uint32_t bits = i % 33 ? i % 33 : 64;
		uint32_t mask =
			128 | (rng() % 2 ? 32 : 4) | (rng() % 2 ? 16 : 8);
		uint32_t block = 2 * (uint32_t)(1 + rng() % 16);
		uint32_t line = 1 + (uint32_t)(rng() % (i % 3 ? 200 : 4096));
		const struct codec_params p = {.n = 4,
					       .cd = {mask, block, bits, line}};
		size_t n = 8 * (1 + rng() % (i % 5 ? 300 : 12000)), len;
		unsigned char *plain = random_pixels(&p, n);
		unsigned char *in = encode(&p, plain, n, &len);

		check_decodes(&p, in, len, plain, n);
		free(plain);
		free(in);
	}
}

TEST(odd_lengths)
{
	unsigned char out[64] = {0};
	unsigned char in[20] = {7};
	size_t len = 1;

	/* 7 bytes are not a number of 16-, 24-, 32- or 64-bit pixels. */
	for (uint32_t bits = 16; bits <= 64; bits += 8) {
		const struct codec_params p = {.n = 4, .cd = {169, 8, bits, 8}};

		CHECK_EQ_I(decode(&p, in, sizeof in, out, sizeof out, &len),
			   -EBADMSG);
	}
	in[0] = 0;
	{
		const struct codec_params p = {.n = 4, .cd = {169, 8, 8, 8}};

		CHECK_OK(decode(&p, in, 4, out, 0, &len));
		CHECK_EQ_U(len, 0);
		CHECK_EQ_I(decode(&p, in, 5, out, 0, &len), -EBADMSG);
		CHECK_EQ_I(decode(&p, in, 3, out, 9, &len), -EBADMSG);
	}
}

TEST(refused_parameters)
{
	static const uint32_t bad[][4] = {
		{169, 0, 16, 13},   {169, 7, 16, 13},   {169, 34, 16, 13},
		{169, 8, 0, 13},    {169, 8, 33, 13},   {169, 8, 128, 13},
		{169, 8, 16, 0},    {169, 8, 16, 4097}, {169, 8, 65536, 13},
		{169, ~0u, 16, 13}, {169, 8, 16, ~0u},
	};
	unsigned char out[156];
	size_t len;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct codec_params p = {.n = 4};

		memcpy(p.cd, bad[i], sizeof bad[i]);
		CHECK_EQ_I(decode(&p, nn_u16, sizeof nn_u16, out, sizeof out,
				  &len),
			   -EBADMSG);
	}
	for (uint32_t n = 0; n < 6; n++) {
		const struct codec_params p = {.n = n, .cd = {169, 8, 16, 13}};

		CHECK_EQ_I(decode(&p, nn_u16, sizeof nn_u16, out, sizeof out,
				  &len),
			   n == 4 ? 0 : -EBADMSG);
	}
}

/*
 * A run of zero blocks: 4 bits say so, 8 are the first sample, then as many 0
 * as there are blocks.  libaec multiplies by the 10 samples of a block: 4 more
 * than 2^32, a line that never again ends where its buffer does.
 */
TEST(zeros)
{
	const struct codec_params p = {.n = 4, .cd = {169, 10, 8, 4000}};
	size_t ones = 4 + (4 + 8 + 429496730u) / 8, n = ones + 100000;
	size_t plain = 4000000, len;
	unsigned char *in = calloc(n, 1), *out = malloc(plain);

	CHECK(in && out);
	for (unsigned i = 0; i < 4; i++)
		in[i] = plain >> 8 * i & 255;
	memset(in + ones, 255, n - ones);
	in[ones] = 255 >> (4 + 8 + 429496730u) % 8;
	CHECK_EQ_I(decode(&p, in, n, out, plain, &len), -EBADMSG);
	free(in);
	free(out);
}

int main(void)
{
	RUN(golden);
	RUN(round_trips);
	RUN(odd_lengths);
	RUN(refused_parameters);
	RUN(zeros);
	return test_done();
}
#else
int main(void)
{
	printf("skipped: built without libaec\n");
	return 77;
}
#endif
