/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache under threads: one load per key, the budget, failures, the gate. */
#include "store/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "store/cache_private.h"
#include "test.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define KEYS 4096

/* Bytes that count somewhere else. */
static _Atomic uint64_t elsewhere;
static void release(void *ctx, void *data, size_t capacity)
{
	(void)ctx;
	(void)capacity;
	free(data);
}
static int foreign_load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
			struct error *err)
{
	(void)ctx;
	(void)gauge;
	(void)err;
	*out = buf_around(malloc(MIB), MIB, MIB, &elsewhere, release, NULL);
	return 0;
}

/* ---- threads that wait ---- */

#define SLEEPERS 16
static _Atomic pid_t sleeper[SLEEPERS];
static _Atomic unsigned sleepers;

/* How often thread `tid` went to sleep; -1: it is awake. */
static long naps(pid_t tid)
{
	char path[64], line[128], state = 0;
	long n = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof line, f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	}
	fclose(f);
	return state == 'S' ? n : -1;
}

static bool all_sleep(long naps_of[SLEEPERS], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		naps_of[i] = sleeper[i] == gettid() ? 0 : naps(sleeper[i]);
		if (naps_of[i] < 0)
			return false;
	}
	return true;
}

/* Return once `n` threads have said that they will wait, and all but this one sleep: at
 * two looks, and without waking up in between, so that at one moment all of them do. */
static void wait_for_sleepers(unsigned n)
{
	long before[SLEEPERS], now[SLEEPERS];

	/* It polls, and how long it sleeps between two looks does not matter. */
	while (atomic_load(&sleepers) < n || !all_sleep(before, n) ||
	       !all_sleep(now, n) || memcmp(before, now, n * sizeof *now))
		usleep(1000);
}

/* A loader that knows what its bytes must be and counts its calls. */
struct fake {
	uint64_t set, index;
	size_t size;
	unsigned others; /* threads that wait before it is loaded */
	int fail;        /* 0 or -errno */
};
static _Atomic unsigned loads[KEYS];

static unsigned char byte_of(uint64_t set, uint64_t index)
{
	return (unsigned char)(set * 31 + index * 7 + 1);
}

static int fake_load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err)
{
	const struct fake *f = ctx;

	atomic_fetch_add(&loads[f->index % KEYS], 1);
	if (f->others)
		wait_for_sleepers(f->others + 1);
	*out = buf_new(f->size, gauge);
	CHECK(*out != NULL);
	if (f->fail) {
		buf_unref(*out);
		*out = NULL;
		return error_set(err, f->fail, "chunk %u is bad",
				 (unsigned)f->index);
	}
	memset((*out)->data, byte_of(f->set, f->index), f->size);
	return 0;
}

static struct buf *get(struct cache *c, uint64_t set, uint64_t index,
		       size_t size)
{
	struct fake f = {set, index, size, 0, 0};
	struct error err = {0};
	struct buf *b;

	CHECK_OK(cache_get(c, set, index, buf_cost(size), 0, fake_load, &f, &b,
			   &err));
	CHECK_EQ_U(b->size, size);
	CHECK_EQ_U(b->data[size - 1], byte_of(set, index));
	return b;
}

static struct cache *new_cache(uint64_t budget)
{
	struct error err = {0};
	struct cache *c = NULL;

	memset(loads, 0, sizeof loads);
	CHECK_OK(cache_new(&c, budget, &err));
	return c;
}

static struct cache_usage usage(struct cache *c)
{
	struct cache_usage u;

	cache_verify(c);
	cache_usage(c, &u);
	return u;
}

static void run_threads(unsigned n, void *(*fn)(void *), void *arg)
{
	pthread_t t[64];

	for (unsigned i = 0; i < n; i++)
		CHECK_OK(pthread_create(&t[i], NULL, fn, arg));
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(pthread_join(t[i], NULL));
}

TEST(hits_and_misses)
{
	struct cache *c = new_cache(10 * MIB);
	struct cache_usage u;
	struct buf *b;

	CHECK(!cache_has(c, 1, 2));
	CHECK(!cache_peek(c, 1, 2));
	buf_unref(get(c, 1, 2, MIB));
	CHECK(cache_has(c, 1, 2));
	CHECK(!cache_has(c, 2, 1));
	b = cache_peek(c, 1, 2);
	CHECK(b != NULL);
	buf_unref(b);
	buf_unref(get(c, 1, 2, MIB));
	u = usage(c);
	CHECK_EQ_U(u.budget, 10 * MIB);
	CHECK_EQ_U(u.entries, 1);
	CHECK_EQ_U(u.hits, 2);
	CHECK_EQ_U(u.misses, 1);
	CHECK(u.bytes >= MIB && u.bytes < MIB + KIB);
	cache_free(c);
	cache_free(NULL);
}

/* ---- who goes ---- */

/* Used again, often enough not to be one reader's requests for one chunk. */
static void use(struct cache *c, uint64_t set, uint64_t index)
{
	for (unsigned i = 0; i < 20; i++)
		buf_unref(get(c, set, index, MIB));
}

/* How many of the first n chunks of a set are there. */
static unsigned there(struct cache *c, uint64_t set, uint64_t n)
{
	unsigned k = 0;

	for (uint64_t i = 0; i < n; i++)
		k += cache_has(c, set, i);
	return k;
}

static struct cache *cache_of(unsigned chunks)
{
	return new_cache(chunks * (MIB + KIB));
}

TEST(first_in_goes_first)
{
	struct cache *c = cache_of(8);

	for (uint64_t i = 0; i < 8; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK_EQ_U(usage(c).evictions, 0);
	use(c, 1, 0); /* used again: 1 goes first now */
	buf_unref(get(c, 1, 8, MIB));
	CHECK(cache_has(c, 1, 0));
	CHECK(!cache_has(c, 1, 1));
	for (uint64_t i = 2; i <= 8; i++)
		CHECK(cache_has(c, 1, i));
	CHECK_EQ_U(usage(c).evictions, 1);
	CHECK(usage(c).bytes <= 8 * (MIB + KIB));
	cache_free(c);
}

/* Each chunk of a scan is asked for in pieces. */
static void scan(struct cache *c, uint64_t set)
{
	for (uint64_t i = 0; i < 500; i++)
		for (unsigned piece = 0; piece < 4; piece++)
			buf_unref(get(c, set, i, MIB));
}

TEST(scans_leave_what_is_used)
{
	struct cache *c = cache_of(40);

	for (uint64_t i = 0; i < 30; i++)
		buf_unref(get(c, 1, i, MIB));
	for (uint64_t i = 0; i < 30; i++)
		use(c, 1, i);
	/* At first new ones are given most of the room, and not all. */
	scan(c, 2);
	CHECK(there(c, 1, 30) >= 9);
	/* Then it is known which are wanted again. */
	for (uint64_t i = 0; i < 30; i++)
		use(c, 1, i);
	scan(c, 4);
	CHECK_EQ_U(there(c, 1, 30), 30);
	CHECK(usage(c).bytes <= 40 * (MIB + KIB));
	/* But nobody stays for ever: two others are used now. */
	for (uint64_t i = 0; i < 500; i++) {
		use(c, 3, i % 2 ? i : i - 2 * (i > 1));
		buf_unref(get(c, 3, 1000 + i, MIB));
	}
	CHECK(there(c, 1, 30) < 30);
	cache_free(c);
}

TEST(loops_keep_what_fits)
{
	struct cache *c = cache_of(40);
	uint64_t before = 0;

	for (unsigned round = 0; round < 20; round++) {
		if (round == 10)
			before = usage(c).hits;
		for (uint64_t i = 0; i < 50; i++)
			buf_unref(get(c, 1, i, MIB));
	}
	/* Ten rounds of 50, of which 40 fit at best. By order of use: none. */
	CHECK(usage(c).hits - before >= 30);
	CHECK(usage(c).hits - before <= 400);
	cache_free(c);
}

TEST(ghosts_are_forgotten)
{
	struct cache *c = cache_of(40);

	for (uint64_t i = 0; i < 50; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(!cache_has(c, 1, 0) && !cache_has(c, 1, 1));
	buf_unref(get(c, 1, 0, MIB)); /* just gone: it is wanted */
	for (uint64_t i = 50; i < 150; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(cache_has(c, 1, 0));
	buf_unref(get(c, 1, 1, MIB)); /* long gone: it is new */
	for (uint64_t i = 150; i < 250; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(cache_has(c, 1, 0));
	CHECK(!cache_has(c, 1, 1));
	cache_free(c);
}

TEST(ahead_is_not_used)
{
	struct cache *c = cache_of(8);

	for (uint64_t i = 0; i < 8; i++)
		buf_unref(get(c, 1, i, MIB));
	cache_expect(c, 1, 0);
	cache_expect(c, 1, 1);
	cache_expect(c, 1, 99); /* is not there: nothing to say */
	/* Passed over, because somebody is to come for them. */
	for (uint64_t i = 8; i < 16; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(cache_has(c, 1, 0) && cache_has(c, 1, 1));
	CHECK(!cache_has(c, 1, 2) && !cache_has(c, 1, 3));
	/* He came for one; nobody came twice, nor for ever. */
	buf_unref(get(c, 1, 0, MIB));
	for (uint64_t i = 16; i < 24; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(!cache_has(c, 1, 0));
	for (uint64_t i = 24; i < 60; i++)
		buf_unref(get(c, 1, i, MIB));
	CHECK(!cache_has(c, 1, 1));
	cache_free(c);
}

TEST(what_loads_cost)
{
	struct cache *c = new_cache(MIB);

	/* All alike, whatever that is. */
	for (unsigned i = 0; i < 200; i++)
		CHECK_EQ_U(policy_weigh(c, 1 + i % 3, 100000, MIB), 1);
	/* One that takes five times as long, until that is what all take. */
	for (unsigned i = 0; i < 40; i++)
		policy_weigh(c, 9, 500000, MIB);
	CHECK_EQ_U(policy_weigh(c, 1, 100000, MIB), 1);
	for (unsigned i = 0; i < 2000; i++)
		policy_weigh(c, i % 10 ? 1 : 9, i % 10 ? 100000 : 500000, MIB);
	CHECK(policy_weigh(c, 9, 500000, MIB) >= 3);
	CHECK(policy_weigh(c, 9, 500000, MIB) <= 5);
	for (unsigned i = 0; i < 2000; i++)
		policy_weigh(c, 9, 500000, MIB);
	CHECK_EQ_U(policy_weigh(c, 9, 500000, MIB), 1);
	/* Numbers that no load has. */
	CHECK_EQ_U(policy_weigh(c, 7, UINT64_MAX, 0), 8);
	for (unsigned i = 0; i < 100; i++) {
		unsigned w = policy_weigh(c, i, i % 2 ? UINT64_MAX : 0,
					  i % 3 ? UINT64_MAX : 0);

		CHECK(w >= 1 && w <= 8);
	}
	cache_free(c);
}

TEST(pinned_stay_and_count)
{
	struct cache *c = new_cache(4 * MIB + 4 * KIB);
	struct buf *pin[6];

	for (uint64_t i = 0; i < 6; i++)
		pin[i] = get(c, 1, i, MIB); /* more than the budget: allowed */
	CHECK_EQ_U(usage(c).entries, 6);
	CHECK(usage(c).bytes > 6 * MIB);
	for (uint64_t i = 0; i < 6; i++)
		buf_unref(pin[i]);
	buf_unref(get(c, 1, 6, MIB));
	CHECK_EQ_U(usage(c).entries, 4);
	CHECK(usage(c).bytes <= 4 * MIB + 4 * KIB);
	cache_free(c);
}

TEST(oversized_is_not_kept)
{
	struct cache *c = new_cache(MIB);
	struct buf *b;

	buf_unref(get(c, 1, 1, 100 * KIB));
	b = get(c, 1, 2, 2 * MIB);
	CHECK(!cache_has(c, 1, 2));
	CHECK(usage(c).bytes >= 2 * MIB);
	buf_unref(b);
	CHECK(usage(c).bytes < MIB);
	cache_free(c);
	c = new_cache(0); /* keeps nothing, works all the same */
	buf_unref(get(c, 1, 1, 1));
	buf_unref(get(c, 1, 1, 1));
	CHECK_EQ_U(usage(c).misses, 2);
	CHECK_EQ_U(usage(c).bytes, 0);
	cache_free(c);
}

static void get_foreign(struct cache *c, uint64_t index, struct buf **held)
{
	struct error err = {0};
	struct buf *b;

	CHECK_OK(cache_get(c, 2, index, 0, 0, foreign_load, NULL, &b, &err));
	if (held)
		*held = b;
	else
		buf_unref(b);
}

TEST(what_counts_elsewhere)
{
	struct cache *c = new_cache(2 * MIB);
	struct buf *held;
	uint64_t mark;

	buf_unref(get(c, 1, 0, MIB));
	get_foreign(c, 0, &held);
	for (uint64_t i = 1; i < 10; i++)
		get_foreign(c, i, NULL);
	/* Beyond the budget, and kept. */
	CHECK_EQ_U(usage(c).entries, 11);
	CHECK(usage(c).bytes < MIB + 16 * KIB);
	CHECK_EQ_U(elsewhere, 10 * MIB);
	mark = cache_mark(c);
	get_foreign(c, 5, NULL);
	cache_drop_unused(c, mark, UINT64_MAX);
	/* What was used since, what is held, what is our own. */
	CHECK_EQ_U(usage(c).entries, 3);
	CHECK(cache_has(c, 2, 5) && cache_has(c, 2, 0) && cache_has(c, 1, 0));
	CHECK_EQ_U(elsewhere, 2 * MIB);
	buf_unref(held);
	cache_drop_unused(c, UINT64_MAX, UINT64_MAX);
	CHECK_EQ_U(usage(c).entries, 1);
	CHECK_EQ_U(elsewhere, 0);
	cache_free(c);
}

TEST(larger_than_expected)
{
	struct cache *c = new_cache(4 * MIB);
	struct error err = {0};
	struct buf *b;

	for (uint64_t i = 0; i < 16; i++) {
		struct fake f = {1, i, MIB, 0, 0};

		CHECK_OK(cache_get(c, 1, i, 10, 0, fake_load, &f, &b, &err));
		CHECK(usage(c).bytes <= 4 * MIB);
		buf_unref(b);
	}
	/* Absurd numbers do no harm. */
	struct fake f = {1, 99, 1, 0, 0};
	CHECK_OK(cache_get(c, 1, 99, UINT64_MAX, UINT64_MAX, fake_load, &f, &b,
			   &err));
	buf_unref(b);
	CHECK(usage(c).bytes < MIB);
	cache_free(c);
}

/* ---- one flight ---- */

static struct cache *shared;
static struct fake shared_fake;
static _Atomic unsigned failures, arrived;

static void *get_shared(void *arg)
{
	struct fake f = shared_fake;
	struct error err = {0};
	struct buf *b;
	int r;

	(void)arg;
	if (f.others) {
		unsigned i = atomic_fetch_add(&arrived, 1);

		sleeper[i] = gettid();
		atomic_fetch_add(&sleepers, 1);
	}
	r = cache_get(shared, f.set, f.index, f.size, 0, fake_load, &f, &b,
		      &err);
	CHECK_EQ_I(r, f.fail);
	if (r) {
		CHECK(b == NULL);
		CHECK_EQ_I(err.code, f.fail);
		CHECK_STR(err.text, "chunk 5 is bad");
		atomic_fetch_add(&failures, 1);
		return NULL;
	}
	CHECK_EQ_U(b->data[0], byte_of(f.set, f.index));
	buf_unref(b);
	return NULL;
}

/* They all want the same; it is loaded when all but the loader wait for it. */
static void run_sleepers(void)
{
	arrived = sleepers = 0;
	run_threads(SLEEPERS, get_shared, NULL);
}

TEST(one_load_for_all_at_once)
{
	struct cache_usage u;

	shared = new_cache(MIB);
	shared_fake = (struct fake){3, 5, 1000, SLEEPERS - 1, 0};
	run_sleepers();
	CHECK_EQ_U(loads[5], 1);
	u = usage(shared);
	CHECK_EQ_U(u.misses, 1);
	CHECK_EQ_U(u.hits, SLEEPERS - 1);
	cache_free(shared);
}

TEST(failure_reaches_all_and_is_not_kept)
{
	shared = new_cache(MIB);
	shared_fake = (struct fake){3, 5, 1000, SLEEPERS - 1, -EBADMSG};
	failures = 0;
	run_sleepers();
	CHECK_EQ_U(failures, SLEEPERS);
	CHECK_EQ_U(loads[5], 1);
	CHECK(!cache_has(shared, 3, 5));
	CHECK_EQ_U(usage(shared).bytes, 0);
	shared_fake.fail = 0;
	shared_fake.others = 0;
	run_threads(1, get_shared, NULL);
	CHECK(cache_has(shared, 3, 5));
	cache_free(shared);
}

TEST(oversized_is_shared_by_those_who_wait)
{
	shared = new_cache(MIB);
	shared_fake = (struct fake){3, 5, 3 * MIB, SLEEPERS - 1, 0};
	run_sleepers();
	CHECK_EQ_U(loads[5], 1);
	CHECK_EQ_U(usage(shared).bytes, 0);
	CHECK_EQ_U(usage(shared).entries, 0);
	cache_free(shared);
}

static void *get_all(void *arg)
{
	uint64_t at = (uint64_t)(uintptr_t)&at / 16 % KEYS;

	for (uint64_t i = 0; i < KEYS; i++, at = (at + 1103) % KEYS)
		buf_unref(get(arg, 1, at, 100 + at % 100));
	return NULL;
}

TEST(one_load_per_key_without_eviction)
{
	struct cache *c = new_cache(64 * MIB);

	run_threads(8, get_all, c);
	for (unsigned i = 0; i < KEYS; i++)
		CHECK_EQ_U(loads[i], 1);
	CHECK_EQ_U(usage(c).entries, KEYS);
	CHECK_EQ_U(usage(c).evictions, 0);
	cache_free(c);
}

/* ---- the gate ---- */

static _Atomic uint64_t inside, inside_max;

static void inside_add(uint64_t n)
{
	uint64_t now = atomic_fetch_add(&inside, n) + n;
	uint64_t max = atomic_load(&inside_max);

	while (max < now &&
	       !atomic_compare_exchange_weak(&inside_max, &max, now))
		;
}

static int gated_load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	uint64_t cost = *(uint64_t *)ctx;

	(void)err;
	inside_add(cost);
	/* Only makes it likelier that too many would be inside at once, if they
	 * could. */
	usleep(2000);
	atomic_fetch_sub(&inside, cost);
	*out = buf_new(100, gauge);
	CHECK(*out != NULL);
	return 0;
}

static _Atomic uint64_t next_key;
static void *get_gated(void *arg)
{
	struct error err = {0};
	struct buf *b;

	for (unsigned i = 0; i < 10; i++) {
		uint64_t cost = *(uint64_t *)arg;

		CHECK_OK(cache_get(shared, 1, atomic_fetch_add(&next_key, 1),
				   cost / 2, cost / 2, gated_load, &cost, &b,
				   &err));
		buf_unref(b);
	}
	return NULL;
}

static uint64_t most_inside(uint64_t budget, uint64_t cost)
{
	inside_max = 0;
	shared = new_cache(budget);
	run_threads(12, get_gated, &cost);
	CHECK_EQ_U(inside, 0);
	CHECK(usage(shared).bytes < MIB);
	cache_free(shared);
	return inside_max;
}

TEST(loads_take_turns)
{
	CHECK(most_inside(64 * MIB, 10 * MIB) <= 30 * MIB);  /* 32 MiB */
	CHECK(most_inside(400 * MIB, 20 * MIB) <= 80 * MIB); /* a quarter */
	CHECK_EQ_U(most_inside(64 * MIB, 500 * MIB), 500 * MIB);
}

/* A load that needs another entry, which others may be loading or queueing
 * for; all of them too large for the gate to let two in. */
static int nested_load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		       struct error *err)
{
	uint64_t index = *(uint64_t *)ctx;

	if (index % 4 != 3) {
		uint64_t other = index + 1;
		struct buf *b;

		CHECK_OK(cache_get(shared, 1, other, 100 * MIB, 0, nested_load,
				   &other, &b, err));
		CHECK_EQ_U(b->data[0], other % 256);
		buf_unref(b);
	}
	*out = buf_new(1, gauge);
	(*out)->data[0] = (unsigned char)index;
	return 0;
}

static void *get_nested(void *arg)
{
	unsigned seed = atomic_fetch_add((_Atomic unsigned *)arg, 1);
	struct error err = {0};
	struct buf *b;

	for (unsigned i = 0; i < 300; i++) {
		uint64_t index = i / 4 * 4 + (seed + i) % 4;

		CHECK_OK(cache_get(shared, 1, index, 100 * MIB, 0, nested_load,
				   &index, &b, &err));
		CHECK_EQ_U(b->data[0], index % 256);
		buf_unref(b);
	}
	return NULL;
}

TEST(loads_within_loads)
{
	_Atomic unsigned seed = 0;

	/* The reservations push everything out all the time. */
	shared = new_cache(MIB);
	run_threads(8, get_nested, &seed);
	CHECK(usage(shared).bytes <= MIB);
	cache_free(shared);
}

/* ---- everything at once ---- */

#define STRESS_KEYS 600
static void peek_at(struct cache *c, uint64_t index)
{
	struct buf *b = cache_peek(c, 2, index);

	if (b)
		CHECK_EQ_U(b->data[b->size / 2], byte_of(2, index));
	buf_unref(b);
}

static void *stress(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)&seed;
	struct cache *c = arg;
	struct buf *held[4] = {NULL};

	for (unsigned i = 0; i < test_rounds(100000); i++) {
		struct error err = {0};
		struct fake f = {2, 0, 0, 0, 0};
		struct buf *b;
		int r;

		seed = seed * 1664525 + 1013904223;
		f.index = (seed >> 8) % STRESS_KEYS;
		if (seed >> 30)
			f.index /= 8; /* some keys are hot */
		f.size = 1 + f.index * 40;
		if (f.index % 50 == 49)
			f.fail = -EBADMSG;
		if (f.index % 200 == 198)
			f.size = 5 * MIB + f.index; /* beyond the budget */
		if (f.index % 200 == 198 && i % 64)
			continue;
		r = cache_get(c, f.set, f.index, f.size, f.index % 7 * 1000,
			      fake_load, &f, &b, &err);
		CHECK_EQ_I(r, f.fail);
		CHECK_EQ_I(err.code, f.fail);
		if (r)
			continue;
		CHECK_EQ_U(b->size, f.size);
		CHECK_EQ_U(b->data[f.size / 2], byte_of(f.set, f.index));
		buf_unref(held[i % 4]);
		held[i % 4] = b;
		peek_at(c, (seed >> 4) % STRESS_KEYS);
		if (i % 4096 == 0)
			cache_verify(c);
	}
	for (unsigned i = 0; i < 4; i++)
		buf_unref(held[i]);
	return NULL;
}

TEST(stress_of_all_kinds)
{
	struct cache *c = new_cache(4 * MIB);
	struct cache_usage u;

	run_threads(8, stress, c);
	u = usage(c);
	CHECK(u.evictions > 0);
	CHECK(u.hits > u.misses);
	buf_unref(get(c, 9, 9, 1)); /* the last pins are gone: back to budget */
	CHECK(usage(c).bytes <= 4 * MIB);
	cache_free(c);
}

int main(void)
{
	RUN(hits_and_misses);
	RUN(first_in_goes_first);
	RUN(scans_leave_what_is_used);
	RUN(loops_keep_what_fits);
	RUN(ghosts_are_forgotten);
	RUN(ahead_is_not_used);
	RUN(what_loads_cost);
	RUN(pinned_stay_and_count);
	RUN(oversized_is_not_kept);
	RUN(what_counts_elsewhere);
	RUN(larger_than_expected);
	RUN(one_load_for_all_at_once);
	RUN(failure_reaches_all_and_is_not_kept);
	RUN(oversized_is_shared_by_those_who_wait);
	RUN(one_load_per_key_without_eviction);
	RUN(loads_take_turns);
	RUN(loads_within_loads);
	RUN(stress_of_all_kinds);
	return test_done();
}
