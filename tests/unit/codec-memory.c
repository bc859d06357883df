/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding chunk after chunk allocates nothing, and keeps nothing. */
/*
 * Where no sanitizer has malloc for itself, it is ours here and counts. Elsewhere
 * the same chunks are decoded, and the sanitizer says what was left behind.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <limits.h>
#include <lz4.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>
#if HAVE_BLOSC
#include <blosc.h>
#endif
#if HAVE_BZIP2
#include <bzlib.h>
#endif
#if HAVE_SZIP
#include <libaec.h>
#endif

#include "base/bytes.h"
#include "codec/pipeline.h"
#include "codec_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static unsigned long taken, given; /* memory, by calls of a single thread */

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTED true
/* glibc's own, under the names it keeps for those who interpose. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
	taken++;
	return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
	taken++;
	return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
	taken += !p;
	return __libc_realloc(p, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
	taken++;
	*p = __libc_memalign(align, n);
	return *p ? 0 : ENOMEM;
}
void free(void *p)
{
	given += p != NULL;
	__libc_free(p);
}
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	taken++;
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, off);
}
int munmap(void *at, size_t n)
{
	given++;
	return (int)syscall(SYS_munmap, at, n);
}
#else
#define COUNTED false
#endif

/* Decode a chunk of `n` bytes so many times: each may take memory `most` times,
 * and gives all of it back. */
static void check_memory(const struct pipeline *p, const void *in,
			 size_t in_len, size_t n, unsigned rounds,
			 unsigned most)
{
	unsigned char *out = codec_test_filled(0, n);
	struct error err = {0, ""};

	/* What the thread keeps. */
	for (unsigned i = 0; i < 3; i++)
		if (pipeline_decode(p, 0, in, in_len, out, n, &err) < 0)
			test_fail(__FILE__, __LINE__, "%s", err.text);
	taken = given = 0;
	for (unsigned i = 0; i < rounds; i++)
		CHECK_OK(pipeline_decode(p, 0, in, in_len, out, n, NULL));
	if (COUNTED && (taken > (unsigned long)rounds * most || taken != given))
		test_fail(__FILE__, __LINE__,
			  "%s: %u chunks took memory %lu times, gave it back "
			  "%lu times",
			  p->filter[p->n - 1].name, rounds, taken, given);
	free(out);
}

static void add(struct pipeline *p, uint32_t id, const uint32_t *cd, unsigned n)
{
	CHECK_OK(pipeline_add(p, id, NULL, cd, n, 4, NULL));
}

/* What we encode ourselves. */
static void check_own(const uint32_t *ids, size_t n, unsigned rounds)
{
	unsigned char *plain = codec_test_random(n, 4), *in;
	struct pipeline p = {0};
	uint32_t skipped, size = 4;
	size_t room, len;

	for (; *ids; ids++)
		add(&p, *ids, &size, *ids == 2);
	room = pipeline_bound(&p, n);
	in = codec_test_filled(0, room);
	CHECK_OK(pipeline_encode(&p, plain, n, in, room, &len, &skipped, NULL));
	CHECK_EQ_U(skipped, 0);
	check_memory(&p, in, len, n, rounds, 0);
	free(in);
	free(plain);
}

TEST(common_filters)
{
	static const uint32_t lists[][4] = {
		{1},        {2, 1},  {2, 1, 3},  {32000},
		{2, 32000}, {32015}, {2, 32015},
	};

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		check_own(lists[i], 5000, 3000);
		check_own(lists[i], 200000, 60);
		check_own(lists[i], 3000000, 6); /* scratch that is not kept */
	}
}

/* Blocks of 8 KiB, for bitshuffle: any bits are those of some elements. */
static size_t put_blocks(const unsigned char *plain, size_t n, bool lz4,
			 unsigned char *to)
{
	size_t at = 12;

	store_be64(to, n);
	store_be32(to + 8, 8192);
	for (size_t i = 0; i < n; i += 8192) {
		size_t len = lz4 ? (size_t)LZ4_compress_default(
					   (const char *)plain + i,
					   (char *)to + at + 4, 8192, 10000)
				 : ZSTD_compress(to + at + 4, 10000, plain + i,
						 8192, 1);

		store_be32(to + at, (uint32_t)len);
		at += 4 + len;
	}
	return at;
}

TEST(other_filters)
{
	enum { N = 81920 };
	unsigned char *plain = codec_test_random(N, 4);
	unsigned char *in = codec_test_filled(0, 2 * N);
	uint32_t bits[] = {0, 4, 4, 2048, 0}, lz4[] = {0, 4, 4, 2048, 2},
		 zstd[] = {0, 4, 4, 2048, 3},
		 nbit[] = {8, 0, N / 4, 1, 4, 0, 32, 0},
		 scale[20] = {2, 0, N / 4, 0, 4};
	struct pipeline p[6] = {{0}};
	int len;

	add(&p[0], 32008, bits, 5);
	check_memory(&p[0], plain, N, N, 200, 0);
	add(&p[1], 32008, lz4, 5);
	check_memory(&p[1], in, put_blocks(plain, N, true, in), N, 200, 0);
	add(&p[2], 32008, zstd, 5);
	check_memory(&p[2], in, put_blocks(plain, N, false, in), N, 200, 0);
	add(&p[3], 32004, NULL, 0);
	len = LZ4_compress_default((char *)plain, (char *)in + 16, N,
				   2 * N - 16);
	store_be64(in, N);
	store_be32(in + 8, N);
	store_be32(in + 12, (uint32_t)len);
	check_memory(&p[3], in, 16 + (size_t)len, N, 200, 0);
	add(&p[4], 5, nbit, 8);
	check_memory(&p[4], plain, N, N, 100, 0);
	add(&p[5], 6, scale, 20);
	memset(in, 0, 21);
	in[0] = 20; /* bits */
	in[4] = 8;
	memcpy(in + 21, plain, N / 4 * 20 / 8 + 1);
	check_memory(&p[5], in, 21 + N / 4 * 20 / 8 + 1, N, 100, 0);
	free(in);
	free(plain);
}

/* Their libraries take memory for each chunk, and give it back. */
TEST(libraries)
{
	enum { N = 65536 };
	unsigned char *plain = codec_test_random(N, 4);
	unsigned char *in = codec_test_filled(0, 2 * N);
	struct pipeline p[3] = {{0}};

#if HAVE_BLOSC
	int n = blosc_compress_ctx(5, 1, 4, N, plain, in, 2 * N, "lz4", 0, 1);

	add(&p[0], 32001, NULL, 0);
	check_memory(&p[0], in, (size_t)n, N, 100, 2);
#endif
#if HAVE_BZIP2
	unsigned len = 2 * N;

	CHECK_EQ_I(BZ2_bzBuffToBuffCompress((char *)in, &len, (char *)plain, N,
					    9, 0, 0),
		   BZ_OK);
	add(&p[1], 307, NULL, 0);
	check_memory(&p[1], in, len, N, 30, 2);
#endif
#if HAVE_SZIP
	static const uint32_t cd[] = {32, 32, 8, 256};
	struct aec_stream s = {.bits_per_sample = 8,
			       .block_size = 32,
			       .rsi = 8,
			       .flags = AEC_DATA_PREPROCESS,
			       .next_in = plain,
			       .avail_in = N,
			       .next_out = in + 4,
			       .avail_out = 2 * N - 4};

	store_le32(in, N);
	CHECK_EQ_I(aec_buffer_encode(&s), AEC_OK);
	add(&p[2], 4, cd, 4);
	check_memory(&p[2], in, 4 + s.total_out, N, 100, 3);
#endif
	(void)p;
	free(in);
	free(plain);
}

int main(void)
{
	RUN(common_filters);
	RUN(other_filters);
	RUN(libraries);
	codec_thread_cleanup();
	return test_done();
}
