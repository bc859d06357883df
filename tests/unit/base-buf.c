/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers: gauges, reuse of pages and its bound, references across threads. */
#include "base/buf.h"

#include <pthread.h>

#include "base/system.h"
#include "test.h"

#define MIB ((size_t)1 << 20)

static _Atomic uint64_t gauge;

TEST(sizes_and_costs)
{
	static const size_t sizes[] = {0,     1,     4096,    65535,
				       65536, 65537, 1000000, MIB};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buf *b = buf_new(sizes[i], &gauge);

		CHECK(b != NULL);
		CHECK(b->data != NULL);
		CHECK_EQ_U(b->size, sizes[i]);
		CHECK(b->capacity >= b->size);
		CHECK_EQ_U((uintptr_t)b->data % 16, 0);
		CHECK_EQ_U(gauge, b->capacity);
		CHECK_EQ_U(buf_cost(sizes[i]), b->capacity);
		memset(b->data, 0xa5, b->capacity);
		buf_unref(b);
		CHECK_EQ_U(gauge, 0);
		buf_trim();
	}
	buf_unref(NULL);
	CHECK(buf_new(SIZE_MAX, &gauge) == NULL);
	CHECK(buf_new(SIZE_MAX / 2, &gauge) == NULL);
	CHECK_EQ_U(gauge, 0);
}

TEST(last_reference_counts)
{
	struct buf *b = buf_new(MIB, &gauge);

	CHECK(buf_ref(b) == b);
	buf_unref(b);
	CHECK_EQ_U(gauge, MIB);
	buf_unref(b);
	CHECK_EQ_U(gauge, 0);
	b = buf_new(MIB, NULL);
	CHECK_EQ_U(gauge, 0);
	buf_unref(b);
}

static unsigned released;
static void release(void *ctx, void *data, size_t capacity)
{
	CHECK(ctx == &released);
	CHECK_EQ_U(capacity, 8192);
	free(data);
	released++;
}

TEST(memory_of_somebody_else)
{
	void *data = malloc(8192);
	struct buf *b =
		buf_around(data, 5000, 8192, &gauge, release, &released);

	CHECK(b && b->data == data);
	CHECK_EQ_U(b->size, 5000);
	CHECK_EQ_U(gauge, 8192);
	buf_unref(buf_ref(b));
	CHECK_EQ_U(released, 0);
	buf_unref(b);
	CHECK_EQ_U(released, 1);
	CHECK_EQ_U(gauge, 0);
}

TEST(reuse)
{
	struct buf *b = buf_new(MIB, &gauge);
	unsigned char *data = b->data;

	memset(data, 1, MIB);
	buf_unref(b);
	/* Slightly smaller: the same pages, and the gauge knows them all. */
	b = buf_new(MIB - 100000, &gauge);
	CHECK(b->data == data);
	CHECK_EQ_U(b->size, MIB - 100000);
	CHECK_EQ_U(gauge, MIB);
	buf_unref(b);
	/* Larger, or less than four fifths: others. */
	b = buf_new(MIB + 1, &gauge);
	CHECK(b->data != data);
	CHECK_EQ_U(gauge, buf_cost(MIB + 1));
	buf_unref(b);
	b = buf_new(MIB * 3 / 4, &gauge);
	CHECK_EQ_U(gauge, MIB * 3 / 4);
	buf_unref(b);
	/* Of several that fit, the tightest. */
	b = buf_new(MIB, &gauge);
	CHECK_EQ_U(gauge, MIB);
	buf_unref(b);
	CHECK_EQ_U(gauge, 0);
	buf_trim();
}

/* Give up `n` buffers of a MiB at once, all of them touched. */
static void churn(unsigned n)
{
	struct buf *b[64];

	for (unsigned i = 0; i < n; i++) {
		b[i] = buf_new(MIB, &gauge);
		memset(b[i]->data, 1, MIB);
	}
	for (unsigned i = 0; i < n; i++)
		buf_unref(b[i]);
}

/* The memory of checking tools is in the resident size: no exact answers. */
#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ ||         \
	HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer) || \
	HAS_FEATURE(memory_sanitizer)
#define EXACT_MEMORY 0
#else
#define EXACT_MEMORY 1
#endif

TEST(kept_bytes_are_bounded)
{
	uint64_t before = system_resident(), after;

	churn(64);
	after = system_resident();
	if (EXACT_MEMORY && before)
		CHECK(after < before + 12 * MIB);
	buf_reuse_limit(32 * MIB);
	churn(64);
	if (EXACT_MEMORY && before)
		CHECK(system_resident() > before + 16 * MIB);
	buf_trim();
	after = system_resident();
	if (EXACT_MEMORY && before)
		CHECK(after < before + 4 * MIB);
	buf_reuse_limit(0);
	churn(8);
	after = system_resident();
	if (EXACT_MEMORY && before)
		CHECK(after < before + 4 * MIB);
	buf_reuse_limit(8 * MIB);
	CHECK_EQ_U(gauge, 0);
}

TEST(very_large_ones_are_kept_twice)
{
	struct buf *a, *b, *c;
	unsigned char *p, *q;

	for (size_t most = 0; most <= 64 * MIB; most += 32 * MIB) {
		buf_reuse_large(most);
		a = buf_new(20 * MIB, &gauge);
		b = buf_new(20 * MIB, &gauge);
		c = buf_new(20 * MIB, &gauge);
		CHECK(a && b && c);
		buf_unref(a);
		p = b->data;
		buf_unref(b);
		q = c->data;
		buf_unref(c);
		CHECK_EQ_U(gauge, 0);
		/* Two of the three; what is usual counts nowhere. */
		CHECK_EQ_U(atomic_load(&buf_extra_bytes),
			   most < 40 * MIB ? 0 : 32 * MIB);
		if (most >= 40 * MIB) {
			a = buf_new(20 * MIB, &gauge);
			b = buf_new(19 * MIB, &gauge);
			CHECK(a->data == q && b->data == p);
			CHECK_EQ_U(atomic_load(&buf_extra_bytes), 0);
			buf_unref(a);
			buf_unref(b);
		}
		buf_trim();
		CHECK_EQ_U(atomic_load(&buf_extra_bytes), 0);
	}
	buf_reuse_large(0);
	buf_reuse_limit(8 * MIB);
}

#define THREADS 4
static void *churner(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	struct buf *b[8] = {NULL};

	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = i % 8, size;

		seed = seed * 1103515245 + 12345;
		size = seed >> 8 & 0x3ffff;
		if (b[k])
			CHECK_EQ_U(b[k]->data[b[k]->size], k);
		buf_unref(b[k]);
		b[k] = buf_new(size + 1, &gauge);
		b[k]->size = size;
		b[k]->data[size] = (unsigned char)k;
		buf_unref(buf_ref(b[k]));
		if (i % 1000 == 0)
			buf_trim();
		if (i % 1777 == 0)
			buf_reuse_limit(i % 2 ? MIB : 8 * MIB);
	}
	for (unsigned k = 0; k < 8; k++)
		buf_unref(b[k]);
	return NULL;
}

TEST(threads)
{
	unsigned seed[THREADS];
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		seed[i] = i + 1;
		CHECK_OK(pthread_create(&t[i], NULL, churner, &seed[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ_U(gauge, 0);
	buf_trim();
}

int main(void)
{
	RUN(sizes_and_costs);
	RUN(last_reference_counts);
	RUN(memory_of_somebody_else);
	RUN(reuse);
	RUN(very_large_ones_are_kept_twice);
	RUN(kept_bytes_are_bounded);
	RUN(threads);
	return test_done();
}
