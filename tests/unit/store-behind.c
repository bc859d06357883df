/* SPDX-License-Identifier: BSD-2-Clause */
/* What was handed out wholly is dropped, and what comes back stays. */
#include "store/behind.h"
#include "test.h"

/* Of ROOM chunks, behind.c keeps BEHIND behind readers. */
enum { SIZE = 64 << 10, ROOM = 256, BEHIND = ROOM / 8 };

static struct cache *cache;
static struct behind behind;

static void begin(void)
{
	CHECK_OK(cache_new(&cache, (uint64_t)ROOM * SIZE, NULL));
	behind_init(&behind, cache, (uint64_t)ROOM * SIZE);
}

static void end(void)
{
	behind_destroy(&behind);
	cache_verify(cache);
	cache_free(cache);
}

static unsigned loads;
static size_t size = SIZE; /* of a chunk */

static int load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		struct error *err)
{
	(void)ctx;
	(void)err;
	loads++;
	*out = buf_new(size, gauge);
	return *out ? 0 : -1;
}

/* As the store does: all of a chunk is read. */
static void read_chunk(uint64_t index, bool forward)
{
	struct buf *b = cache_peek(cache, 1, index);

	if (!b)
		CHECK_OK(cache_get(cache, 1, index, size, 0, load, NULL, &b,
				   NULL));
	if (atomic_fetch_add(&b->served, size) < size)
		behind_add(&behind, 1, index, size, size, forward);
	buf_unref(b);
}

/* In an order of its own; how many were loaded. */
static unsigned epoch(unsigned n, unsigned which)
{
	unsigned before = loads, order[512] = {0};
	uint32_t seed = which + 1;

	CHECK(n <= 512);
	for (unsigned i = 0; i < n; i++) {
		unsigned j;

		seed = seed * 1664525u + 1013904223u;
		j = (seed >> 8) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < n; i++)
		read_chunk(order[i], false);
	return loads - before;
}

/* Of chunks 0 to n - 1. */
static unsigned kept(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += cache_has(cache, 1, i);
	return sum;
}

TEST(dropped)
{
	for (unsigned forward = 0; forward < 2; forward++) {
		begin();
		for (unsigned i = 0; i < 100; i++)
			read_chunk(i, forward);
		CHECK_EQ_U(kept(100), BEHIND);
		CHECK(cache_has(cache, 1, 99) && !cache_has(cache, 1, 0));
		end();
	}
}

/* The kernel forgot what it was given: what fits is decoded twice, and no more. */
TEST(what_comes_back_stays)
{
	begin();
	CHECK_EQ_U(epoch(200, 0), 200);
	CHECK(epoch(200, 1) >= 200 - BEHIND);
	epoch(200, 2); /* what was on the list still */
	CHECK(epoch(200, 3) <= 10);
	CHECK(kept(200) >= 190);
	/* Who goes forward is another matter. */
	for (unsigned i = 1000; i < 1200; i++)
		read_chunk(i, true);
	CHECK(!cache_has(cache, 1, 1000));
	end();
}

/* Of a forward reader 16 MiB are kept, however large the cache is. */
TEST(few_behind_a_forward_reader)
{
	const uint64_t large = UINT64_C(1) << 30;

	size = 512 << 10;
	CHECK_OK(cache_new(&cache, large, NULL));
	behind_init(&behind, cache, large);
	CHECK(cache_ghosts_from(cache) <= size);
	for (unsigned i = 0; i < 100; i++)
		read_chunk(i, true);
	CHECK_EQ_U(kept(100), (16 << 20) / size);
	end();
	size = SIZE;
}

/* More than fits: what comes back early enough fills the cache in time. */
TEST(more_than_fits)
{
	unsigned last = 0;

	begin();
	for (unsigned e = 0; e < 12; e++)
		last = epoch(333, e);
	CHECK(last < 333 * 3 / 4);
	end();
}

/* Of more than the cache would know again nothing is dropped. */
TEST(small_ones_stay)
{
	CHECK_OK(cache_new(&cache, (uint64_t)20000 * SIZE, NULL));
	behind_init(&behind, cache, (uint64_t)20000 * SIZE);
	CHECK(cache_ghosts_from(cache) > SIZE &&
	      cache_ghosts_from(cache) < (4 << 20));
	for (unsigned i = 0; i < 600; i++)
		read_chunk(i, false);
	CHECK_EQ_U(kept(600), 600);
	for (unsigned i = 0; i < 600; i++)
		read_chunk(1000 + i, true);
	CHECK(!cache_has(cache, 1, 1000));
	end();
}

/* Whoever asks for it meanwhile is not through with it. */
TEST(in_use)
{
	begin();
	read_chunk(0, false);
	for (unsigned i = 1; i < 60; i++) {
		read_chunk(i, false);
		read_chunk(0, false);
	}
	CHECK(cache_has(cache, 1, 0));
	end();
}

/* What is on the list has gone meanwhile, and come again, and is being read. */
TEST(another_one)
{
	for (unsigned forward = 0; forward < 2; forward++) {
		struct buf *b;

		begin();
		read_chunk(0, forward);
		cache_drop(cache, 1, 0);
		CHECK_OK(cache_get(cache, 1, 0, SIZE, 0, load, NULL, &b, NULL));
		atomic_fetch_add(&b->served, SIZE / 2);
		buf_unref(b);
		for (unsigned i = 1; i < 100; i++)
			read_chunk(i, forward);
		CHECK(cache_has(cache, 1, 0));
		CHECK(!cache_has(cache, 1, 1));
		end();
	}
}

/* The same order each time, in all but a twentieth of the room. */
TEST(nearly_all_of_it)
{
	begin();
	behind.others.most = (uint64_t)ROOM * SIZE / 64;
	for (unsigned e = 0; e < 3; e++)
		epoch(243, 1);
	CHECK(epoch(243, 1) <= 12);
	end();
}

/* What was asked for twice when its turn comes has come back already. */
TEST(twice)
{
	struct buf *b;

	begin();
	read_chunk(0, false);
	b = cache_peek(cache, 1, 0);
	CHECK(b);
	atomic_fetch_add(&b->served, SIZE);
	buf_unref(b);
	for (unsigned i = 1; i < 100; i++)
		read_chunk(i, false);
	CHECK(cache_has(cache, 1, 0));
	CHECK(!cache_has(cache, 1, 1));
	end();
}

static _Atomic uint64_t elsewhere;

static int load_other(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	(void)gauge;
	return load(ctx, &elsewhere, out, err);
}

TEST(memory_of_somebody_else)
{
	struct buf *b;

	begin();
	CHECK_OK(cache_get(cache, 1, 0, SIZE, 0, load_other, NULL, &b, NULL));
	buf_unref(b);
	for (unsigned i = 0; i < 100; i++)
		read_chunk(i, false);
	CHECK(cache_has(cache, 1, 0));
	CHECK(!cache_has(cache, 1, 1));
	end();
}

/* Held by a reader: until he is through with it. */
TEST(held)
{
	struct buf *b;

	begin();
	CHECK_OK(cache_get(cache, 1, 0, SIZE, 0, load, NULL, &b, NULL));
	atomic_fetch_add(&b->served, SIZE);
	behind_add(&behind, 1, 0, SIZE, SIZE, false);
	for (unsigned i = 1; i < 100; i++)
		read_chunk(i, false);
	CHECK(cache_has(cache, 1, 0));
	CHECK(!cache_has(cache, 1, 1));
	buf_unref(b);
	for (unsigned i = 100; i < 200; i++)
		read_chunk(i, false);
	CHECK(!cache_has(cache, 1, 0));
	end();
}

int main(void)
{
	RUN(dropped);
	RUN(what_comes_back_stays);
	RUN(few_behind_a_forward_reader);
	RUN(more_than_fits);
	RUN(small_ones_stay);
	RUN(in_use);
	RUN(another_one);
	RUN(nearly_all_of_it);
	RUN(twice);
	RUN(memory_of_somebody_else);
	RUN(held);
	return test_done();
}
