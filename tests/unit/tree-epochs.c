/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of a rank: DistributedSampler's vectors, and a naive list of them. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/shuffle.h"
#include "test.h"
#include "tree/epochs.h"

static uint64_t below(uint64_t n)
{
	return test_random() % n;
}

/* Walk "3/rank-0-of-4/from/2"; a directory's number. */
static int walk(struct epochs *e, const char *path, struct epochs_entry *out)
{
	char name[128];

	*out = (struct epochs_entry){EPOCHS_DIRECTORY, EPOCHS_TOP};
	while (*path) {
		size_t n = strcspn(path, "/");
		int r;

		snprintf(name, sizeof name, "%.*s", (int)n, path);
		CHECK(out->kind == EPOCHS_DIRECTORY);
		r = epochs_find(e, (uint32_t)out->number, name, ".npy", out);
		if (r < 0)
			return r;
		path += n + (path[n] == '/');
	}
	return 0;
}

static uint32_t dir(struct epochs *e, const char *path)
{
	struct epochs_entry x;

	CHECK_EQ_I(walk(e, path, &x), 0);
	CHECK(x.kind == EPOCHS_DIRECTORY);
	return (uint32_t)x.number;
}

/* What is listed, by entry and by name, is `want`. */
static void check_list(struct epochs *e, const char *path, uint64_t from,
		       const uint64_t *want, uint64_t n)
{
	uint32_t d = dir(e, path);

	CHECK_EQ_U(epochs_count(e, d), n);
	for (uint64_t i = 0; i < n; i++) {
		struct epochs_entry x;
		uint64_t sample;
		char name[64], expected[64];

		CHECK_EQ_I(epochs_entry(e, d, i, ".npy", &sample, name,
					sizeof name),
			   0);
		CHECK_EQ_U(sample, want[i]);
		snprintf(expected, sizeof expected, "%06" PRIu64 ".npy",
			 from + i);
		CHECK_STR(name, expected);
		CHECK_EQ_I(epochs_find(e, d, name, ".npy", &x), 0);
		CHECK(x.kind == EPOCHS_SAMPLE);
		CHECK_EQ_U(x.number, want[i]);
	}
}

#define LIST(e, path, ...)                                      \
	check_list(e, path, 0, (const uint64_t[]){__VA_ARGS__}, \
		   sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

/* torch 1.13.1, DistributedSampler(range(N), W, R, seed=0). */
TEST(as_torch)
{
	struct epochs *e = epochs_new(10);

	CHECK(e);
	LIST(e, "0/rank-0-of-4", 4, 3, 6);
	LIST(e, "0/rank-1-of-4", 1, 9, 2);
	LIST(e, "0/rank-2-of-4", 7, 0, 4);
	LIST(e, "0/rank-3-of-4", 5, 8, 1);
	LIST(e, "0/rank-0-of-4,drop-last", 4, 3);
	LIST(e, "0/rank-3-of-4,drop-last", 5, 8);
	LIST(e, "1/rank-0-of-1", 5, 6, 1, 2, 0, 8, 9, 3, 7, 4);
	LIST(e, "0/rank-0-of-1,seed=1", 5, 6, 1, 2, 0, 8, 9, 3, 7, 4);
	LIST(e, "0/rank-0-of-4,in-turn", 4, 3, 6);
	LIST(e, "0/rank-3-of-4,in-turn", 5, 8);
	LIST(e, "7/rank-1-of-4,no-shuffle", 1, 5, 9);
	LIST(e, "7/rank-2-of-4,no-shuffle", 2, 6, 0);
	LIST(e, "7/rank-2-of-4,in-turn,no-shuffle", 2, 6);
	LIST(e, "7/rank-2-of-4,in_turn,no_shuffle", 2, 6);
	LIST(e, "0/rank-3-of-4,drop_last", 5, 8);
	epochs_free(e);
	e = epochs_new(3);
	LIST(e, "0/rank-7-of-8,no-shuffle", 1);
	LIST(e, "0/rank-5-of-8,no-shuffle", 2);
	CHECK_EQ_U(epochs_count(e, dir(e, "0/rank-5-of-8,drop-last")), 0);
	CHECK_EQ_U(epochs_count(e, dir(e, "0/rank-5-of-8,in-turn")), 0);
	epochs_free(e);
	e = epochs_new(2100);
	{
		static const uint64_t begin[] = {66, 365, 772, 1110};
		uint32_t d = dir(e, "3/rank-1-of-4");
		uint64_t sample;

		CHECK_EQ_U(epochs_count(e, d), 525);
		for (unsigned i = 0; i < 4; i++) {
			CHECK_EQ_I(epochs_entry(e, d, i, "", &sample, NULL, 0),
				   0);
			CHECK_EQ_U(sample, begin[i]);
		}
	}
	epochs_free(e);
}

/* The same by lists, as the documents have it. */
static uint64_t naive(uint64_t *out, uint64_t n, uint64_t world, uint64_t rank,
		      unsigned seed, unsigned flags, uint64_t workers,
		      uint64_t worker, uint64_t batch)
{
	static uint64_t all[4096], mine[4096];
	uint64_t total, m = 0, k = 0;

	for (uint64_t i = 0; i < n; i++)
		all[i] = i;
	if (!(flags & 2))
		shuffle_order(all, n, seed);
	total = flags & 4   ? n
		: flags & 1 ? n / world * world
			    : (n + world - 1) / world * world;
	for (uint64_t i = n; i < total; i++)
		all[i] = all[i - n];
	for (uint64_t i = rank; i < total; i += world)
		mine[m++] = all[i];
	for (uint64_t i = 0; i < m; i++)
		if (i / batch % workers == worker)
			out[k++] = mine[i];
	return k;
}

TEST(random_ones)
{
	static uint64_t want[4096];

	for (unsigned round = 0; round < 400; round++) {
		uint64_t n = 1 + below(300),
			 world = 1 + below(round % 4 ? 8 : 400);
		uint64_t rank = below(world), workers = 1 + below(4);
		uint64_t worker = below(workers), batch = 1 + below(9), count,
			 from;
		unsigned epoch = (unsigned)below(5), seed = (unsigned)below(9);
		unsigned flags = (unsigned)below(8);
		struct epochs *e = epochs_new(n);
		char path[256], more[300];

		if ((flags & 5) == 5)
			flags &= 3;
		snprintf(path, sizeof path,
			 "%u/rank-%" PRIu64 "-of-%" PRIu64
			 ",seed=%u%s%s%s,worker-%" PRIu64 "-of-%" PRIu64
			 ",batch=%" PRIu64,
			 epoch, rank, world, seed,
			 flags & 1 ? ",drop-last" : "",
			 flags & 2 ? ",no-shuffle" : "",
			 flags & 4 ? ",in-turn" : "", worker, workers, batch);
		count = naive(want, n, world, rank, epoch + seed, flags,
			      workers, worker, batch);
		check_list(e, path, 0, want, count);
		from = below(count + 1);
		snprintf(more, sizeof more, "%s/from/%" PRIu64, path, from);
		check_list(e, more, from, want + from, count - from);
		epochs_free(e);
	}
}

TEST(names)
{
	static const char *const wrong[] = {
		"x",
		"-1",
		"01",
		"4294967296",
		"0/rank-0",
		"0/rank-4-of-4",
		"0/rank-0-of-0",
		"0/rank-00-of-4",
		"0/rank-0-of-04",
		"0/rank-0-of-4,",
		"0/rank-0-of-4,x",
		"0/rank-0-of-4,drop-lastx",
		"0/rank-0-of-4,drop-last,drop-last",
		"0/rank-0-of-4,in-turn,in_turn",
		"0/rank-0-of-4,drop-last,in-turn",
		"0/rank-0-of-4,seed=",
		"0/rank-0-of-4,seed=1,seed=2",
		"0/rank-0-of-4,batch=0",
		"0/rank-0-of-4,worker-2-of-2",
		"0/rank-0-of-4/000003.npy",
		"0/rank-0-of-4/00000.npy",
		"0/rank-0-of-4/0000000.npy",
		"0/rank-0-of-4/000000.txt",
		"0/rank-0-of-4/000000",
		"0/rank-0-of-4/from/4",
		"0/rank-0-of-4/from/x",
		"0/rank-0-of-4/from/02",
		"0/rank-0-of-4/from/1/000000.npy",
		"0/rank-0-of-4/from/000000.npy",
		"0/rank-0-of-4/from/order.txt",
		"0/order.txt",
		"order.txt",
		"0/from",
		"",
		"0/",
		"0/rank-0-of-4/from/1/from",
		"0/rank-0-of-1048577",
		"0/rank-0-of-4,seed=18446744073709551616"};
	struct epochs *e = epochs_new(10);
	struct epochs_entry x;
	uint32_t d, up;
	char name[64];

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (*wrong[i] && strcmp(wrong[i], "0/"))
			CHECK_EQ_I(walk(e, wrong[i], &x), -ENOENT);
	CHECK_EQ_I(epochs_find(e, EPOCHS_TOP, "", ".npy", &x), -ENOENT);
	CHECK_EQ_I(epochs_find(e, EPOCHS_TOP, "0/rank-0-of-1", ".npy", &x),
		   -ENOENT);
	CHECK_EQ_I(walk(e, "0/rank-0-of-4,seed=18446744073709551615", &x), 0);
	CHECK_EQ_I(walk(e, "4294967295/rank-0-of-4/from/3", &x), 0);
	CHECK_EQ_U(epochs_count(e, (uint32_t)x.number), 0);
	CHECK_EQ_I(walk(e, "0/rank-0-of-4/order.txt", &x), 0);
	CHECK(x.kind == EPOCHS_ORDER);
	d = dir(e, "0/rank-0-of-4");
	CHECK_EQ_U(x.number, d);
	CHECK_EQ_U(dir(e, "0/rank-0-of-4"), d);
	CHECK_EQ_I(epochs_name(e, d, name, sizeof name), 0);
	CHECK_STR(name, "rank-0-of-4");
	CHECK_EQ_I(epochs_parent(e, d, &up), 0);
	CHECK_EQ_U(up, dir(e, "0"));
	CHECK_EQ_I(epochs_parent(e, up, &up), 0);
	CHECK_EQ_U(up, EPOCHS_TOP);
	CHECK_EQ_I(epochs_parent(e, 60000, &up), -ENOENT);
	CHECK_EQ_U(epochs_count(e, 60000), 0);
	CHECK_EQ_U(epochs_count(e, EPOCHS_TOP), 0);
	epochs_free(e);
}

/* Orders come and go while others use them. */
static void *reader(void *arg)
{
	struct epochs *e = arg;
	uint64_t state = (uint64_t)(uintptr_t)&state;

	for (unsigned i = 0; i < 300; i++) {
		char path[64];
		uint64_t sample;

		state = state * 6364136223846793005u + 1442695040888963407u;
		snprintf(path, sizeof path, "%u/rank-0-of-1",
			 (unsigned)(state >> 33) % (EPOCHS_KEPT_MAX + 9));
		CHECK_EQ_I(
			epochs_entry(e, dir(e, path), 7, "", &sample, NULL, 0),
			0);
		CHECK(sample < 1000);
	}
	return NULL;
}

TEST(many_at_once)
{
	struct epochs *e = epochs_new(1000);
	pthread_t t[4];

	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, reader, e) == 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	epochs_free(e);
}

#define RANKS 8
struct rank {
	struct epochs *e;
	uint32_t dir;
	uint64_t sample;
	pthread_barrier_t *begin;
};

static void *first_of_rank(void *arg)
{
	struct rank *r = arg;

	pthread_barrier_wait(r->begin);
	CHECK_EQ_I(epochs_entry(r->e, r->dir, 1, "", &r->sample, NULL, 0), 0);
	return NULL;
}

static size_t most_memory(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss << 10;
}

/* All ranks begin an epoch: its order is made once. */
TEST(ranks_together)
{
	const uint64_t n = 4000000, made = 3 * n * sizeof(uint32_t);
	struct epochs *e = epochs_new(n);
	uint64_t *want = calloc(n, sizeof *want);
	pthread_barrier_t begin;
	pthread_t t[RANKS];
	struct rank r[RANKS];
	size_t before;

	shuffle_order(want, n, 1);
	pthread_barrier_init(&begin, NULL, RANKS);
	before = most_memory();
	for (unsigned i = 0; i < RANKS; i++) {
		char path[64];

		snprintf(path, sizeof path, "1/rank-%u-of-%u", i, RANKS);
		r[i] = (struct rank){e, dir(e, path), 0, &begin};
		CHECK(!pthread_create(&t[i], NULL, first_of_rank, &r[i]));
	}
	for (unsigned i = 0; i < RANKS; i++) {
		pthread_join(t[i], NULL);
		CHECK_EQ_U(r[i].sample, want[RANKS + i]);
	}
	/* A sanitizer has memory of its own. */
	if (!getenv("TENSORFS_SANITIZED"))
		CHECK(most_memory() - before < made + made / 2);
	pthread_barrier_destroy(&begin);
	epochs_free(e);
	free(want);
}

int main(void)
{
	RUN(as_torch);
	RUN(random_ones);
	RUN(names);
	RUN(many_at_once);
	RUN(ranks_together);
	return test_done();
}
