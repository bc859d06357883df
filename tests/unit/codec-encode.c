/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoders: what they make, our decoders and the codecs' own libraries undo. */
#include <limits.h>
#include <liblzf/lzf.h>
#include <pthread.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "codec/pipeline.h"
#include "codec_test.h"
#include "pack/comp.h"
#include "test.h"

static const struct pack_comp comps[] = {
	{PACK_AUTO, 0}, {PACK_NONE, 0}, {PACK_GZIP, 1}, {PACK_GZIP, 9},
	{PACK_LZF, 0},  {PACK_LZ4, 0},  {PACK_ZSTD, 0}, {PACK_ZSTD, 9},
};
#define N_COMPS (sizeof comps / sizeof *comps)

/* Encode in exactly the room that is promised to do; *out is the caller's. */
static size_t encode(const struct pipeline *p, const void *data, size_t size,
		     unsigned char **out, uint32_t *mask)
{
	unsigned char *plain = codec_test_copy(data, size);
	size_t bound = pipeline_bound(p, size), len = SIZE_MAX;

	*out = codec_test_filled(0x5a, bound);
	CHECK_OK(
		pipeline_encode(p, plain, size, *out, bound, &len, mask, NULL));
	CHECK(len <= bound);
	CHECK_MEM(plain, data, size);
	free(plain);
	return len;
}

/* There and back; the mask. */
static uint32_t round_trip(const struct pipeline *p, const void *data,
			   size_t size)
{
	unsigned char *stored, *back = codec_test_filled(0xa5, size), *exact;
	uint32_t mask = UINT32_MAX;
	size_t len = encode(p, data, size, &stored, &mask);

	exact = codec_test_copy(stored, len);
	CHECK_OK(pipeline_decode(p, mask, exact, len, back, size, NULL));
	CHECK_MEM(back, data, size);
	free(exact);
	free(stored);
	free(back);
	return mask;
}

TEST(round_trips)
{
	static const size_t sizes[] = {0,  1,  2,   3,    7,     8,    15,
				       16, 17, 255, 4096, 10007, 65536};

	for (size_t c = 0; c < N_COMPS; c++)
		for (uint32_t elem = 1; elem <= 40; elem += elem < 20 ? 1 : 7)
			for (size_t i = 0; i < sizeof sizes / sizeof *sizes;
			     i++) {
				size_t n = sizes[i];
				unsigned char *data =
					codec_test_random(n, elem);
				struct pipeline p;

				CHECK_OK(comp_pipeline(&comps[c], elem, n, &p,
						       NULL));
				CHECK_OK(pipeline_cannot_encode(&p, NULL));
				round_trip(&p, data, n);
				CHECK_OK(pipeline_add(&p, 3, NULL, NULL, 0,
						      elem, NULL));
				round_trip(&p, data, n);
				free(data);
			}
}

/* Both loops, and trailing bytes, against the definition. */
TEST(shuffle)
{
	for (size_t elem = 1; elem < 40; elem++)
		for (size_t n = 0; n < 1500; n += 1 + test_random() % 90) {
			unsigned char *in = codec_test_random(n, elem);
			size_t rows = n / elem;

			for (unsigned path = 0; path <= shuffle_best_path();
			     path++) {
				unsigned char *out = codec_test_filled(1, n);

				shuffle_do(path, in, n, elem, out);
				for (size_t i = 0; i < rows; i++)
					for (size_t j = 0; j < elem; j++)
						CHECK_EQ_U(out[j * rows + i],
							   in[i * elem + j]);
				for (size_t i = rows * elem; i < n; i++)
					CHECK_EQ_U(out[i], in[i]);
				free(out);
			}
			free(in);
		}
}

/* What no compressor can do anything about is stored as it is, shuffle and all; a
 * checksum stays. */
TEST(incompressible)
{
	size_t n = 50000;
	unsigned char *noise = malloc(n), *stored;

	CHECK(noise);
	for (size_t i = 0; i < n; i++)
		noise[i] = (unsigned char)(test_random() >> 20);
	for (size_t c = 0; c < N_COMPS; c++) {
		struct pipeline p;
		uint32_t mask;

		CHECK_OK(comp_pipeline(&comps[c], 4, n, &p, NULL));
		CHECK_EQ_U(encode(&p, noise, n, &stored, &mask), n);
		CHECK_MEM(stored, noise, n);
		CHECK_EQ_U(mask, (UINT32_C(1) << p.n) - 1);
		CHECK(pipeline_is_verbatim(&p, mask));
		free(stored);
		CHECK_OK(pipeline_add(&p, 3, NULL, NULL, 0, 4, NULL));
		CHECK_EQ_U(encode(&p, noise, n, &stored, &mask), n + 4);
		CHECK_MEM(stored, noise, n);
		CHECK_EQ_U(mask, (UINT32_C(1) << (p.n - 1)) - 1);
		free(stored);
		round_trip(&p, noise, n);
	}
	free(noise);
}

/* A checksum before the compressor, two compressors, a shuffle alone. */
TEST(orders)
{
	static const uint32_t lists[][6] = {{3, 1}, {2, 3, 1, 3}, {1, 32015},
					    {2},    {3},          {2, 32000, 3},
					    {3, 3}, {2, 2, 1}};
	size_t n = 30011;

	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
		for (int noisy = 0; noisy < 2; noisy++) {
			unsigned char *data = codec_test_random(n, 4);
			struct pipeline p = {0};

			for (size_t i = 0; noisy && i < n; i++)
				data[i] = (unsigned char)test_random();
			for (size_t i = 0; i < 6 && lists[l][i]; i++)
				CHECK_OK(pipeline_add(&p, lists[l][i], NULL,
						      NULL, 0, 4, (void *)0));
			/* shuffle finds its size in the element's */
			round_trip(&p, data, n);
			free(data);
		}
}

/* Every stream as its own library reads it. */
TEST(libraries)
{
	size_t n = 123457, len;
	unsigned char *data = codec_test_random(n, 1);
	unsigned char *back = malloc(n + 1), *stored;
	uLongf zlen = n + 1;
	struct pipeline p;
	uint32_t mask;

	CHECK(back);
	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_GZIP, 4}, 1, n, &p,
			       NULL));
	len = encode(&p, data, n, &stored, &mask);
	CHECK_OK(uncompress(back, &zlen, stored, len));
	CHECK_EQ_U(zlen, n);
	CHECK_MEM(back, data, n);
	free(stored);
	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_LZF, 0}, 1, n, &p,
			       NULL));
	len = encode(&p, data, n, &stored, &mask);
	CHECK_EQ_U(lzf_decompress(stored, (unsigned)len, back, (unsigned)n), n);
	CHECK_MEM(back, data, n);
	free(stored);
	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_ZSTD, 3}, 1, n, &p,
			       NULL));
	len = encode(&p, data, n, &stored, &mask);
	CHECK_EQ_U(ZSTD_getFrameContentSize(stored, len), n);
	CHECK_EQ_U(ZSTD_decompress(back, n + 1, stored, len), n);
	CHECK_MEM(back, data, n);
	free(stored);
	free(data);
	free(back);
}

/* Several blocks, some raw. */
TEST(lz4_blocks)
{
	static const uint32_t blocks[] = {1,    13,    64,        1000,
					  4096, 99999, UINT32_MAX};
	size_t n = 40000;
	unsigned char *data = codec_test_random(n, 2), *stored;

	memset(data, 7, n / 2); /* so that it is worth it */
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		struct pipeline p = {0};
		uint32_t mask;
		size_t len;

		CHECK_OK(pipeline_add(&p, 32004, NULL, &blocks[i], 1, 1, NULL));
		len = encode(&p, data, n, &stored, &mask);
		if (!mask) {
			CHECK(len > 12);
			CHECK_EQ_U(load_be64(stored), n);
			CHECK_EQ_U(load_be32(stored + 8),
				   blocks[i] < n ? blocks[i] : n);
		}
		CHECK(mask == 0 || blocks[i] < 64);
		free(stored);
		round_trip(&p, data, n);
	}
	free(data);
}

TEST(client_data)
{
	struct pipeline p;

	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_LZF, 0}, 8, 800, &p,
			       NULL));
	CHECK_EQ_U(p.n, 1);
	CHECK_EQ_U(p.filter[0].id, 32000);
	CHECK_EQ_U(p.filter[0].params.n, 3);
	CHECK_EQ_U(p.filter[0].params.cd[0], 4);
	CHECK_EQ_U(p.filter[0].params.cd[1], 261);
	CHECK_EQ_U(p.filter[0].params.cd[2], 800);
	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_AUTO, 0}, 8, 800, &p,
			       NULL));
	CHECK_EQ_U(p.n, 2);
	CHECK_EQ_U(p.filter[0].id, 2);
	CHECK_EQ_U(p.filter[0].params.cd[0], 8);
	CHECK_EQ_U(p.filter[1].id, 1);
	CHECK_EQ_U(p.filter[1].params.cd[0], 4);
	CHECK_OK(comp_pipeline(&(struct pack_comp){PACK_ZSTD, 0}, 1, 800, &p,
			       NULL));
	CHECK_EQ_U(p.n, 1);
	CHECK_EQ_U(p.filter[0].params.cd[0], 3);
	CHECK_EQ_I(
		comp_pipeline(&(struct pack_comp){PACK_XZ, 0}, 1, 8, &p, NULL),
		-EINVAL);
	CHECK_EQ_I(
		comp_pipeline(&(struct pack_comp){PACK_LZ4, 9}, 1, 8, &p, NULL),
		-EINVAL);
	CHECK_EQ_I(comp_pipeline(&(struct pack_comp){PACK_LZF, 0}, 1,
				 UINT64_C(1) << 32, &p, NULL),
		   -EINVAL);
}

TEST(words)
{
	static const char *const good[] = {"auto", "none",    "gzip", "gzip:9",
					   "zstd", "zstd:22", "lz4",  "lz4:1",
					   "xz",   "xz:6",    "lzf"};
	static const char *const bad[] = {
		"",       "zst",     "zstd:",   "zstd:0",   "zstd:23",
		"zstd:x", "gzip:10", "lzf:1",   "none:1",   "auto:3",
		"zstd9",  ":9",      "gzip:-1", "zstd:3:4", "GZIP"};
	char text[32];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct pack_comp c;

		CHECK_OK(comp_parse(good[i], &c, NULL));
		comp_describe(&c, text, sizeof text);
		CHECK_STR(text, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = {0, ""};
		struct pack_comp c;

		if (comp_parse(bad[i], &c, &err) != -EINVAL || !err.text[0])
			test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
	}
}

/* What we cannot write is said, with its name. */
TEST(cannot)
{
	uint32_t cd[] = {0, 4, 4, 0, 0};
	struct pipeline p = {0};
	struct error err = {0, ""};
	unsigned char out[8];
	uint32_t mask;
	size_t len;

	CHECK_OK(pipeline_add(&p, 32008, NULL, cd, 5, 4, NULL));
	CHECK_EQ_I(pipeline_cannot_encode(&p, &err), -ENOTSUP);
	CHECK(strstr(err.text, "bitshuffle"));
	CHECK_EQ_I(pipeline_encode(&p, "abcd", 4, out, 8, &len, &mask, &err),
		   -ENOTSUP);
	p.n = 0;
	CHECK_OK(pipeline_add(&p, 40000, "mine", NULL, 0, 4, NULL));
	CHECK_EQ_I(pipeline_cannot_encode(&p, &err), -ENOTSUP);
	CHECK(strstr(err.text, "mine"));
}

/* Levels alternate in one thread, threads do not meet. */
static void *one_thread(void *arg)
{
	size_t n = 20000;
	unsigned char *data = codec_test_random(n, 4);

	(void)arg;
	for (unsigned i = 0; i < 40; i++) {
		struct pipeline p;

		CHECK_OK(comp_pipeline(&comps[i % N_COMPS], 4, n, &p, NULL));
		round_trip(&p, data, n);
	}
	free(data);
	return NULL;
}

TEST(threads)
{
	pthread_t t[4];

	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, one_thread, NULL));
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_join(t[i], NULL));
}

int main(void)
{
	RUN(shuffle);
	RUN(round_trips);
	RUN(incompressible);
	RUN(orders);
	RUN(libraries);
	RUN(lz4_blocks);
	RUN(client_data);
	RUN(words);
	RUN(cannot);
	RUN(threads);
	codec_thread_cleanup();
	return test_done();
}
