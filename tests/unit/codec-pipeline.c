/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipelines: filters together, masks, lengths, scratch, names, byte order. */
#include <libdeflate.h>
#include <pthread.h>

#include "codec/pipeline.h"
#include "codec_test.h"

/*
 * Chunks of 48 uint16 values (golden_plain) as h5py 3.7 with HDF5 1.10.8 wrote
 * them through filters in the order of their names; by read_direct_chunk.
 */
static const unsigned char by_shuffle_deflate_fletcher32[] = {
	0x78, 0x5e, 0x63, 0x60, 0x60, 0x60, 0x67, 0x67, 0x97, 0x91, 0x91,
	0xb1, 0xb7, 0xb7, 0x67, 0x60, 0x60, 0x58, 0xbf, 0x7e, 0xfd, 0x9f,
	0x3f, 0x7f, 0xb4, 0xb5, 0xb5, 0x81, 0x6c, 0x6e, 0x6e, 0xee, 0x94,
	0x94, 0x94, 0xef, 0xdf, 0xbf, 0x03, 0xd9, 0xd2, 0xd2, 0xd2, 0x6b,
	0xd6, 0xac, 0xf1, 0xf6, 0xf6, 0x66, 0xc0, 0x0d, 0x18, 0x19, 0x19,
	0x31, 0xd9, 0x00, 0xc2, 0xc1, 0x0e, 0x17, 0x04, 0x9b, 0xde, 0x0d,
};
static const unsigned char by_deflate_deflate[] = {
	0x78, 0x5e, 0xab, 0x88, 0x4b, 0x4e, 0x60, 0x60, 0x2c, 0x33, 0x98, 0xc2,
	0xe8, 0x5c, 0x6d, 0xd0, 0xd2, 0xf0, 0x35, 0xe1, 0x07, 0x3b, 0xcf, 0xd6,
	0x83, 0x02, 0x4c, 0x3b, 0x24, 0x1d, 0x0d, 0x5a, 0x19, 0x59, 0xf6, 0x37,
	0x2b, 0xb2, 0x78, 0x18, 0x37, 0x3d, 0x90, 0x62, 0x13, 0xf8, 0xc2, 0xe6,
	0xcc, 0x60, 0xf7, 0x80, 0x4f, 0x1c, 0x00, 0xb6, 0x2f, 0x10, 0x70,
};
static const unsigned char by_shuffle_lzf[] = {
	0x17, 0x00, 0x00, 0x00, 0x07, 0x07, 0x07, 0x1c, 0x1c, 0x1c, 0x3f,
	0x3f, 0x3f, 0x00, 0x00, 0x00, 0xaf, 0xaf, 0xaf, 0xfc, 0xfc, 0xfc,
	0x2b, 0x2b, 0x2b, 0x20, 0x0b, 0x08, 0x0b, 0x0b, 0x0b, 0x64, 0x64,
	0x64, 0xf7, 0xf7, 0xf7, 0x20, 0x0b, 0x08, 0x1b, 0x1b, 0x1b, 0xac,
	0xac, 0xac, 0x4b, 0x4b, 0x4b, 0x20, 0x0b, 0xe0, 0x0f, 0x00, 0x02,
	0x01, 0x01, 0x01, 0xe0, 0x00, 0x1a, 0xa0, 0x0b, 0x01, 0x00, 0x00,
};
static const unsigned char by_fletcher32_deflate[] = {
	0x78, 0x5e, 0x63, 0x60, 0x00, 0x01, 0x76, 0x30, 0x94, 0x01, 0x43,
	0x7b, 0x30, 0x84, 0x80, 0xf5, 0x60, 0xf8, 0x07, 0x0c, 0xb5, 0xc1,
	0x10, 0x02, 0xb8, 0x19, 0x41, 0x30, 0x85, 0x01, 0x04, 0xbf, 0x83,
	0x21, 0x04, 0x48, 0x33, 0x82, 0xe0, 0x1a, 0x06, 0x10, 0xf4, 0x06,
	0x43, 0x11, 0x81, 0xa2, 0x87, 0x00, 0x79, 0x81, 0x0f, 0x8e,
};

/* The first 48 of codec_test_numbers, in uint16. */
static const unsigned char *golden_plain(void)
{
	return codec_test_numbers('u', 2, 48, false);
}

/* A pipeline of these filters in writing order, 0 ends; elements of 2 bytes. */
static struct pipeline pipeline_of(const uint32_t *ids)
{
	struct pipeline p;
	uint32_t cd = 2;

	memset(&p, 0, sizeof p);
	for (; *ids; ids++)
		CHECK_OK(pipeline_add(&p, *ids, NULL, &cd, *ids == 2, 2, NULL));
	return p;
}
#define PIPELINE(...) pipeline_of((const uint32_t[]){__VA_ARGS__, 0})

static int decode(const struct pipeline *p, uint32_t mask, const void *in,
		  size_t in_len, size_t size, const void *want)
{
	unsigned char *stored = codec_test_copy(in, in_len);
	unsigned char *out = codec_test_filled(0x77, size + 1);
	struct error err = {0, ""};
	int r;

	r = pipeline_decode(p, mask, stored, in_len, out, size, &err);
	CHECK_EQ_U(out[size], 0x77);
	CHECK_EQ_I(err.code, r);
	if (r == 0 && want)
		CHECK_MEM(out, (const unsigned char *)want, size);
	free(stored);
	free(out);
	return r;
}

static void check_golden(struct pipeline p, const unsigned char *in, size_t n)
{
	unsigned char *bad = malloc(n);
	const unsigned char *plain = golden_plain();

	CHECK(bad);
	CHECK_OK(decode(&p, 0, in, n, 96, plain));
	CHECK_EQ_I(decode(&p, 0, in, n, 95, plain), -EBADMSG);
	CHECK_EQ_I(decode(&p, 0, in, n, 97, plain), -EBADMSG);
	CHECK_EQ_I(decode(&p, 0, in, n, 0, plain), -EBADMSG);
	for (size_t cut = 0; cut < n; cut++)
		CHECK_EQ_I(decode(&p, 0, in, cut, 96, NULL), -EBADMSG);
	for (size_t bit = 0; bit < n * 8; bit++) {
		int r;

		memcpy(bad, in, n);
		bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
		r = decode(&p, 0, bad, n, 96, NULL);
		CHECK(r == 0 || r == -EBADMSG);
	}
	free(bad);
}

TEST(golden)
{
	check_golden(PIPELINE(2, 1, 3), by_shuffle_deflate_fletcher32,
		     sizeof by_shuffle_deflate_fletcher32);
	check_golden(PIPELINE(1, 1), by_deflate_deflate,
		     sizeof by_deflate_deflate);
	check_golden(PIPELINE(2, 32000), by_shuffle_lzf, sizeof by_shuffle_lzf);
	check_golden(PIPELINE(3, 1), by_fletcher32_deflate,
		     sizeof by_fletcher32_deflate);
}

TEST(verbatim)
{
	struct pipeline none = {0}, p = PIPELINE(2, 1);
	const unsigned char *plain = golden_plain();

	CHECK(pipeline_is_verbatim(&none, 0));
	CHECK_OK(decode(&none, 0, plain, 96, 96, plain));
	CHECK_EQ_I(decode(&none, 0, plain, 95, 96, NULL), -EBADMSG);
	CHECK_EQ_I(decode(&none, 0, plain, 96, 95, NULL), -EBADMSG);
	CHECK_OK(pipeline_decode(&none, 0, NULL, 0, NULL, 0, NULL));
	CHECK_EQ_I(pipeline_decode(&p, 0, NULL, 0, NULL, 0, NULL), -EBADMSG);
	CHECK(!pipeline_is_verbatim(&p, 0));
	CHECK(!pipeline_is_verbatim(&p, 1));
	CHECK(pipeline_is_verbatim(&p, 3));
	CHECK_OK(decode(&p, 3, plain, 96, 96, plain));
	CHECK_OK(decode(&p, 0xffffffff, plain, 96, 96, plain));
}

/* Masked filters: the bytes are what the others make of them. */
TEST(masks)
{
	struct pipeline p = PIPELINE(2, 1, 3), q = PIPELINE(2, 32000);
	size_t n = sizeof by_shuffle_deflate_fletcher32;
	unsigned char half[97] = {0}, plain[96];

	memcpy(plain, golden_plain(), 96);
	for (unsigned i = 0; i < 96; i++)
		half[i % 2 * 48 + i / 2] = plain[i];
	CHECK_OK(decode(&p, 1, by_shuffle_deflate_fletcher32, n, 96, half));
	CHECK_OK(
		decode(&p, 4, by_shuffle_deflate_fletcher32, n - 4, 96, plain));
	CHECK_OK(decode(&p, 6, half, 96, 96, plain));
	CHECK_OK(decode(&q, 2, half, 96, 96, plain));
	CHECK_EQ_I(decode(&q, 2, half, 97, 96, NULL), -EBADMSG);
}

/* A shuffle of single bytes is no stage. */
TEST(identity)
{
	struct pipeline p = {0};
	uint32_t one = 1;

	CHECK_OK(pipeline_add(&p, 2, NULL, &one, 1, 1, NULL));
	CHECK(pipeline_is_verbatim(&p, 0));
	CHECK_OK(decode(&p, 0, "abc", 3, 3, "abc"));
	CHECK_OK(pipeline_add(&p, 1, NULL, NULL, 0, 1, NULL));
	CHECK_EQ_U(pipeline_scratch_size(&p, 1000), 0);
}

TEST(missing)
{
	struct pipeline p = PIPELINE(2, 32013, 1);
	struct error err = {0, ""};
	char out[4];

	CHECK(!p.filter[1].codec);
	CHECK(pipeline_missing(&p, 0) == &p.filter[1]);
	CHECK(pipeline_missing(&p, 1) == &p.filter[1]);
	CHECK(!pipeline_missing(&p, 2));
	CHECK_EQ_I(pipeline_decode(&p, 0, "abcd", 4, out, 4, &err), -ENOTSUP);
	CHECK_STR(err.text,
		  "no decoder for filter zfp (id 32013); the Debian "
		  "package hdf5-filter-plugin-zfp-serial brings an HDF5 "
		  "plugin for it");
	CHECK_OK(decode(&p, 7, "abcd", 4, 4, "abcd"));
	p = PIPELINE(40000);
	CHECK_EQ_I(pipeline_decode(&p, 0, "abcd", 4, out, 4, &err), -ENOTSUP);
	CHECK_STR(err.text, "no decoder for filter 40000, and no Debian "
			    "package is known to bring an HDF5 plugin for it");
}

TEST(names)
{
	CHECK(codec_by_id(1) == &codec_deflate);
	CHECK(codec_by_id(32015) == &codec_zstd);
	CHECK(!codec_by_id(0) && !codec_by_id(32013));
	for (unsigned i = 0; codec_table[i]; i++)
		CHECK_STR(codec_name_of_id(codec_table[i]->id),
			  codec_table[i]->name);
	CHECK_STR(codec_name_of_id(32013), "zfp");
	CHECK_STR(codec_package_of_id(32013), "hdf5-filter-plugin-zfp-serial");
	CHECK_STR(codec_package_of_id(32026), NULL);
	CHECK_STR(codec_name_of_id(32768), NULL);
	CHECK_STR(codec_package_of_id(32768), NULL);
}

TEST(shuffle_parameters)
{
	struct codec_params p = {.n = 0, .elem_size = 8};

	CHECK_OK(codec_shuffle.check(&p, NULL));
	CHECK(!codec_shuffle.is_identity(&p));
	p.elem_size = 1;
	CHECK(codec_shuffle.is_identity(&p));
	p.elem_size = 0;
	CHECK_EQ_I(codec_shuffle.check(&p, NULL), -EBADMSG);
	p.elem_size = 4;
	p.n = 1;
	CHECK_EQ_I(codec_shuffle.check(&p, NULL), -EBADMSG);
}

TEST(add)
{
	struct pipeline p = {0}, q;
	uint32_t cd[80] = {0};
	char text[200];

	CHECK_OK(pipeline_add(&p, 2, "their shuffle", NULL, 0, 4, NULL));
	CHECK_OK(pipeline_add(&p, 40000, "odd\n\xff", cd, 80, 4, NULL));
	CHECK_OK(pipeline_add(&p, 40001, "", cd, 3, 4, NULL));
	CHECK_OK(pipeline_add(&p, 40002,
			      "a comment of more than thirty-two bytes", NULL,
			      0, 4, NULL));
	pipeline_describe(&p, text, sizeof text);
	CHECK_STR(text, "shuffle, odd??, filter 40001, "
			"a comment of more than thirty-t");
	pipeline_describe(&p, text, 10);
	CHECK_STR(text, "shuffle, ");
	q = p;
	CHECK(pipeline_equal(&p, &q));
	q.n--;
	CHECK(!pipeline_equal(&p, &q));
	/* Values beyond those we hold count too. */
	memset(&q, 0, sizeof q);
	memset(&p, 0, sizeof p);
	pipeline_describe(&p, text, sizeof text);
	CHECK_STR(text, "none");
	CHECK_OK(pipeline_add(&p, 40000, NULL, cd, 80, 4, NULL));
	cd[79]++;
	CHECK_OK(pipeline_add(&q, 40000, NULL, cd, 80, 4, NULL));
	CHECK(!pipeline_equal(&p, &q));
	/* No decoder of ours takes so many. */
	CHECK_OK(pipeline_add(&q, 1, NULL, cd, 80, 4, NULL));
	CHECK(!q.filter[1].codec);
	CHECK_EQ_I(pipeline_add(&q, 2, NULL, NULL, 0, 0, NULL), -EBADMSG);
	for (unsigned i = q.n; i < PIPELINE_MAX; i++)
		CHECK_OK(pipeline_add(&q, 1, NULL, NULL, 0, 4, NULL));
	CHECK_EQ_I(pipeline_add(&q, 1, NULL, NULL, 0, 4, NULL), -EBADMSG);
}

TEST(scratch)
{
	struct pipeline one = PIPELINE(1), two = PIPELINE(2, 1, 3);
	struct pipeline many;
	uint32_t ids[PIPELINE_MAX + 1];
	size_t size = 80000, bound = size + size / 8 + 4096;

	for (unsigned i = 0; i < PIPELINE_MAX; i++)
		ids[i] = 1;
	ids[PIPELINE_MAX] = 0;
	many = pipeline_of(ids);
	CHECK_EQ_U(pipeline_scratch_size(&one, size), 0);
	CHECK_EQ_U(pipeline_scratch_size(&two, size), size);
	CHECK(pipeline_scratch_size(&many, size) <= 2 * bound);
	memset(pipeline_stored_scratch(5000000), 1, 5000000);
	pipeline_scratch_release();
	memset(pipeline_stored_scratch(1), 1, 1);
}

/* n times deflate around `size` bytes of noise; checks that it comes back. */
static void check_stack(unsigned n, size_t size)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
	size_t room = size + 20000, len = size;
	unsigned char *plain = malloc(size), *a = malloc(room);
	unsigned char *b = malloc(room), *t;
	uint32_t ids[PIPELINE_MAX + 1] = {0};
	struct pipeline p;

	CHECK(c && plain && a && b);
	for (size_t i = 0; i < size; i++)
		plain[i] = (unsigned char)(i * i * 2654435761u >> 24);
	memcpy(a, plain, size);
	for (unsigned i = 0; i < n; i++) {
		ids[i] = 1;
		len = libdeflate_zlib_compress(c, a, len, b, room);
		CHECK(len > 0);
		t = a;
		a = b;
		b = t;
	}
	p = pipeline_of(ids);
	CHECK_OK(decode(&p, 0, a, len, size, plain));
	CHECK_EQ_I(decode(&p, 0, a, len, size + 1, plain), -EBADMSG);
	CHECK_EQ_I(decode(&p, 0, a, len, size - 1, plain), -EBADMSG);
	CHECK_EQ_I(decode(&p, 1, a, len, size, plain), -EBADMSG);
	free(plain);
	free(a);
	free(b);
	libdeflate_free_compressor(c);
}

TEST(stacked_deflate)
{
	check_stack(2, 1);
	check_stack(2, 3000000); /* more than a thread keeps */
	check_stack(3, 70000);
	check_stack(PIPELINE_MAX, 10000);
}

static void *decode_often(void *arg)
{
	struct pipeline p = PIPELINE(2, 1, 3);
	unsigned char out[96];

	for (unsigned i = 0; i < 2000; i++) {
		CHECK_OK(pipeline_decode(&p, 0, by_shuffle_deflate_fletcher32,
					 sizeof by_shuffle_deflate_fletcher32,
					 out, 96, NULL));
		CHECK_MEM(out, (const unsigned char *)arg, 96);
	}
	memset(pipeline_stored_scratch(100), 1, 100);
	return NULL;
}

/* Threads at once; what each kept is freed with it (a leak checker sees). */
TEST(threads)
{
	static unsigned char plain[96];
	pthread_t t[4];

	memcpy(plain, golden_plain(), 96);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, decode_often, plain));
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_join(t[i], NULL));
}

TEST(swap)
{
	static const unsigned widths[] = {0, 1, 2, 3, 4, 8, 12, 16, 20};
	unsigned char a[960], b[960];

	for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++) {
		unsigned w = widths[i];

		for (size_t n = 0; n < sizeof a; n += w ? w : 100) {
			for (size_t j = 0; j < n; j++)
				a[j] = (unsigned char)(j * 37 >> 2);
			for (size_t j = 0; j < n; j++)
				b[j] = w ? a[j / w * w + w - 1 - j % w] : a[j];
			swap_bytes(a, n, w);
			CHECK_MEM(a, b, n);
		}
	}
}

int main(void)
{
	RUN(golden);
	RUN(verbatim);
	RUN(masks);
	RUN(identity);
	RUN(missing);
	RUN(names);
	RUN(shuffle_parameters);
	RUN(add);
	RUN(scratch);
	RUN(stacked_deflate);
	RUN(threads);
	RUN(swap);
	codec_thread_cleanup();
	return test_done();
}
