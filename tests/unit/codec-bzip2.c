/* SPDX-License-Identifier: BSD-2-Clause */
/* bzip2: chunks of HDF5, round trips with libbz2, damage. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"
#include "test.h"

#if HAVE_BZIP2
#include <errno.h>
#include <bzlib.h>

/* Golden vectors: what HDF5's plugin (libbz2 1.0.8) made of golden_plain. */
static const unsigned char level9[] = {
	0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x83, 0x36,
	0x85, 0xbc, 0x00, 0x00, 0x00, 0xff, 0xff, 0xf8, 0x8c, 0x00, 0x0c, 0x44,
	0x08, 0x44, 0x00, 0x88, 0x48, 0x00, 0xc0, 0x04, 0x80, 0x40, 0x08, 0x84,
	0x00, 0x0c, 0x00, 0x08, 0x44, 0x80, 0x88, 0x40, 0x00, 0xc0, 0x00, 0x84,
	0x40, 0x08, 0x84, 0x30, 0x01, 0x0d, 0x40, 0x25, 0x46, 0x91, 0x3d, 0xa5,
	0x06, 0x81, 0xea, 0x32, 0x69, 0xb4, 0x83, 0xca, 0x64, 0xd0, 0x60, 0x06,
	0x4d, 0x34, 0x19, 0x0c, 0x10, 0xd3, 0x11, 0xa3, 0x02, 0x42, 0xa6, 0x90,
	0x69, 0x34, 0xf4, 0x9a, 0x62, 0x7a, 0x8f, 0x51, 0xe5, 0x36, 0xa3, 0x43,
	0x7a, 0xa7, 0xc6, 0xca, 0x96, 0x4e, 0xbc, 0x74, 0x9b, 0x52, 0xb7, 0xb7,
	0xc4, 0xaf, 0x82, 0xd4, 0x9a, 0xdd, 0x66, 0xca, 0x2f, 0x6a, 0x94, 0x85,
	0xea, 0xf4, 0xde, 0xc0, 0x60, 0x6a, 0x09, 0x7d, 0x72, 0x40, 0x72, 0x17,
	0x0e, 0x87, 0x5c, 0x11, 0x4a, 0x7a, 0x87, 0x0b, 0x79, 0x0a, 0xb9, 0x64,
	0xaf, 0x87, 0x1a, 0xc3, 0x99, 0x75, 0xa2, 0xec, 0xce, 0xa6, 0xb1, 0x72,
	0xcd, 0x09, 0x87, 0x43, 0x04, 0x41, 0xaf, 0x8c, 0x68, 0x30, 0x88, 0xcc,
	0x9e, 0x84, 0x32, 0x3a, 0x84, 0x80, 0xcd, 0x54, 0xc7, 0xd0, 0x3b, 0x48,
	0x98, 0x7b, 0x81, 0xba, 0xb7, 0x1a, 0x74, 0x37, 0x31, 0x82, 0xc3, 0x1c,
	0xec, 0x16, 0x81, 0xbf, 0x57, 0xb0, 0x17, 0xdb, 0x53, 0xec, 0x32, 0xa6,
	0xb0, 0xed, 0xbc, 0x5a, 0xaf, 0x31, 0xcc, 0x2e, 0xc7, 0x98, 0x6c, 0x15,
	0xda, 0x16, 0xff, 0x1c, 0x43, 0x31, 0x77, 0x2a, 0x4a, 0x52, 0x59, 0x49,
	0x67, 0xe8, 0x84, 0x57, 0xb9, 0x04, 0xea, 0x44, 0x30, 0x64, 0x18, 0xd4,
	0x14, 0x49, 0x8d, 0x8d, 0x21, 0x46, 0xc6, 0x46, 0x22, 0x0c, 0x63, 0x12,
	0x8c, 0x41, 0x06, 0x81, 0x8d, 0x03, 0x91, 0x24, 0x41, 0xa2, 0x34, 0x93,
	0x6a, 0x21, 0x82, 0x23, 0x83, 0x42, 0x8e, 0x34, 0xa4, 0x88, 0x4c, 0x69,
	0x31, 0xaf, 0xf1, 0x77, 0x24, 0x53, 0x85, 0x09, 0x08, 0x33, 0x68, 0x5b,
	0xc0,
};
static const unsigned char level1[] = {
	0x42, 0x5a, 0x68, 0x31, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x6a, 0xfb,
	0xb2, 0xf6, 0x00, 0x00, 0x16, 0x6f, 0xcd, 0x70, 0x00, 0x00, 0x34, 0x00,
	0x04, 0x42, 0x00, 0x90, 0x20, 0x82, 0x09, 0xe0, 0x00, 0x40, 0x00, 0x40,
	0x00, 0x40, 0x00, 0x40, 0x00, 0x20, 0x00, 0x70, 0x50, 0x01, 0x88, 0xd3,
	0x4d, 0x1a, 0x09, 0x14, 0x46, 0x4c, 0x83, 0x46, 0x8c, 0x93, 0x42, 0x43,
	0x04, 0x24, 0x6b, 0xa2, 0x3b, 0xa1, 0x4a, 0x97, 0xb1, 0xa8, 0xee, 0x44,
	0x87, 0x43, 0xec, 0x67, 0x87, 0x97, 0x2e, 0x6e, 0x38, 0x94, 0x91, 0x2e,
	0x27, 0xc5, 0x6b, 0xe8, 0xb0, 0xac, 0x9a, 0x81, 0x97, 0x18, 0x0c, 0x62,
	0x82, 0xc8, 0xb0, 0x0b, 0x2c, 0x1b, 0x01, 0x8d, 0x1f, 0x8b, 0xb9, 0x22,
	0x9c, 0x28, 0x48, 0x35, 0x7d, 0xd9, 0x7b, 0x00,
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
#define CODEC codec_bzip2
static const struct codec_params none = {.n = 0};

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

/* Every truncation, every flipped bit, something behind: all are noticed, but
 * for bits that mean nothing. */
static void check_damage(const struct codec_params *p, const unsigned char *in,
			 size_t in_len, const unsigned char *plain, size_t n)
{
	unsigned char *out = malloc(n), *bad = copy_of(in, in_len);
	unsigned char *tail = malloc(in_len + 300);
	size_t len;

	CHECK(out && tail);
	for (size_t cut = 0; cut < in_len; cut++)
		CHECK_EQ_I(decode(p, in, cut, out, n, &len), -EBADMSG);
	for (size_t bit = 0; bit < in_len * 8; bit++) {
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
		if (decode(p, bad, in_len, out, n, &len) == 0)
			CHECK(len <= n && !memcmp(out, plain, len));
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	memcpy(tail, in, in_len);
	memset(tail + in_len, 0x5a, 300);
	CHECK_EQ_I(decode(p, tail, in_len + 300, out, n, &len), -EBADMSG);
	free(out);
	free(bad);
	free(tail);
}

TEST(golden)
{
	unsigned char *plain = golden_plain('u', 2, 400, false);

	check_decodes(&none, level9, sizeof level9, plain, 800);
	check_damage(&none, level9, sizeof level9, plain, 800);
	free(plain);
	plain = golden_plain('f', 8, 60, false);
	check_decodes(&none, level1, sizeof level1, plain, 480);
	check_damage(&none, level1, sizeof level1, plain, 480);
	free(plain);
}

static unsigned char *encode(const unsigned char *plain, size_t n, int level,
			     size_t *len)
{
	unsigned room = (unsigned)(n + n / 50 + 1000);
	unsigned char *out = malloc(room);

	CHECK(out);
	CHECK_OK(BZ2_bzBuffToBuffCompress((char *)out, &room, (char *)plain,
					  (unsigned)n, level, 0, 0));
	*len = room;
	return out;
}

/* Runs, noise, small numbers: the run lengths of bzip2's first step too. */
static unsigned char *random_bytes(size_t n)
{
	unsigned char *p = malloc(n ? n : 1);
	size_t i = 0;

	CHECK(p);
	while (i < n) {
		size_t run = 1 + rng() % 600;
		unsigned kind = rng() % 3;
		unsigned char byte = (unsigned char)rng();

		for (; run && i < n; run--, i++)
			p[i] = kind == 0   ? byte
			       : kind == 1 ? rng() % 3
					   : (unsigned char)rng();
	}
	return p;
}

TEST(round_trips)
{
	for (unsigned i = 0; i < 200; i++) {
		size_t n = i < 20 ? i : i < 190 ? rng() % 5000 : 1500000, len;
		unsigned char *plain = random_bytes(n);
		unsigned char *in = encode(plain, n, 1 + (int)(i % 9), &len);

		check_decodes(&none, in, len, plain, n);
		free(plain);
		free(in);
	}
}

/* A second stream is bytes behind the first one. */
TEST(one_stream)
{
	unsigned char *two = malloc(2 * sizeof level1);
	unsigned char out[1000];
	size_t len;

	CHECK(two);
	memcpy(two, level1, sizeof level1);
	memcpy(two + sizeof level1, level1, sizeof level1);
	CHECK_EQ_I(decode(&none, two, 2 * sizeof level1, out, sizeof out, &len),
		   -EBADMSG);
	CHECK_EQ_I(decode(&none, two, sizeof level1 + 1, out, sizeof out, &len),
		   -EBADMSG);
	CHECK_EQ_I(decode(&none, "", 0, out, sizeof out, &len), -EBADMSG);
	CHECK_EQ_I(decode(&none, "", 0, out, 0, &len), -EBADMSG);
	free(two);
}

int main(void)
{
	RUN(golden);
	RUN(round_trips);
	RUN(one_stream);
	return test_done();
}
#else
int main(void)
{
	printf("skipped: built without libbz2\n");
	return 77;
}
#endif
