/* SPDX-License-Identifier: BSD-2-Clause */
/* What was handed out wholly is dropped, unless it comes back. */
#include "store/behind.h"
#include "test.h"

enum { SIZE = 64 << 10, ROOM = 256 }; /* the list: an eighth of ROOM chunks */

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

static int load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		struct error *err)
{
	(void)ctx;
	(void)err;
	*out = buf_new(SIZE / 2, gauge);
	return *out ? 0 : -1;
}

/* As the store does: all of a chunk is read. */
static void read_chunk(uint64_t index, bool forward)
{
	struct buf *b = cache_peek(cache, 1, index);

	if (!b) {
		CHECK_OK(cache_get(cache, 1, index, SIZE, 0, load, NULL, &b,
				   NULL));
		behind_decoded(&behind, 1, index, SIZE);
	}
	if (atomic_fetch_add(&b->served, SIZE) < SIZE)
		behind_add(&behind, 1, index, SIZE, SIZE, forward);
	buf_unref(b);
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
		CHECK_EQ_U(kept(100), ROOM / 8);
		CHECK(cache_has(cache, 1, 99) && !cache_has(cache, 1, 0));
		end();
	}
}

/* The kernel forgot what it was given: an epoch of what fits is decoded once or
 * twice, and then no more. */
TEST(what_comes_back_stays)
{
	begin();
	for (unsigned epoch = 0; epoch < 3; epoch++)
		for (unsigned i = 0; i < 200; i++)
			read_chunk((i * 77 + epoch) % 200, false);
	CHECK(behind.wary);
	CHECK(kept(200) >= 150);
	/* Who goes forward is another matter. */
	for (unsigned i = 1000; i < 1200; i++)
		read_chunk(i, true);
	CHECK(!cache_has(cache, 1, 1000));
	end();
}

/* It comes back when no cache of this size would have it still. */
TEST(too_late)
{
	begin();
	for (unsigned epoch = 0; epoch < 3; epoch++)
		for (unsigned i = 0; i < 2 * ROOM; i++)
			read_chunk((i * 77 + epoch) % (2 * ROOM), false);
	CHECK(!behind.wary);
	CHECK_EQ_U(kept(2 * ROOM), ROOM / 8);
	end();
}

/* The kernel forgot for a while. */
TEST(again)
{
	begin();
	for (unsigned epoch = 0; epoch < 3; epoch++)
		for (unsigned i = 0; i < 200; i++)
			read_chunk(i, false);
	CHECK(behind.wary);
	for (unsigned i = 200; behind.wary && i < 100000; i++)
		read_chunk(i, false);
	CHECK(!behind.wary);
	for (unsigned i = 200000; i < 200100; i++)
		read_chunk(i, false);
	CHECK(!cache_has(cache, 1, 200000));
	end();
}

/* Of more than can be watched some are, and these tell. */
TEST(many)
{
	enum { MANY = 8000 };
	unsigned watched = 0;

	CHECK_OK(cache_new(&cache, (uint64_t)2 * MANY * SIZE, NULL));
	behind_init(&behind, cache, (uint64_t)2 * MANY * SIZE);
	for (unsigned i = 0; i < MANY; i++)
		read_chunk(i, false);
	for (unsigned i = 0; i < BEHIND_WATCHED; i++)
		watched += behind.watched[i].key != 0;
	CHECK_EQ_U(watched, behind.n_watched);
	CHECK(watched > BEHIND_WATCHED / 8 && watched <= BEHIND_WATCHED / 2);
	CHECK(!behind.wary);
	for (unsigned i = 0; i < MANY; i++)
		read_chunk(i, false);
	CHECK(behind.wary);
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

int main(void)
{
	RUN(dropped);
	RUN(what_comes_back_stays);
	RUN(too_late);
	RUN(again);
	RUN(many);
	RUN(in_use);
	return test_done();
}
