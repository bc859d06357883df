/* SPDX-License-Identifier: BSD-2-Clause */
/* order=: what may be said, and DistributedSampler's vectors. */
#include <errno.h>

#include "readahead/order/order.h"
#include "test.h"

static void accepts(const char *text, struct order_spec want)
{
	struct error err = {0};
	struct order_spec s;

	if (order_spec_parse(text, &s, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
	CHECK_STR(s.file, want.file);
	CHECK_EQ_U(s.seed, want.seed);
	CHECK_EQ_U(s.world, want.world);
	CHECK_EQ_U(s.rank, want.rank);
	CHECK_EQ_U(s.ranks, want.ranks);
	CHECK_EQ_U(s.batch, want.batch);
	CHECK_EQ_U(s.workers, want.workers);
	CHECK_EQ_I(s.drop_last, want.drop_last);
	CHECK_EQ_I(s.no_shuffle, want.no_shuffle);
}

TEST(what_may_be_said)
{
	accepts("torch", (struct order_spec){NULL, 0, 1, 0, 1, 32, 4, 0, 0});
	accepts("torch:seed=18446744073709551615:world=8:rank=7",
		(struct order_spec){NULL, UINT64_MAX, 8, 7, 1, 32, 4, 0, 0});
	accepts("torch:rank=2,world=8,batch=64,workers=0,drop_last,no-shuffle",
		(struct order_spec){NULL, 0, 8, 2, 1, 64, 0, 1, 1});
	accepts("torch,drop-last:no_shuffle:world=4,rank=1-3",
		(struct order_spec){NULL, 0, 4, 1, 3, 32, 4, 1, 1});
	accepts("torch:world=8", /* all of them read here */
		(struct order_spec){NULL, 0, 8, 0, 8, 32, 4, 0, 0});
	accepts("torchfile.txt",
		(struct order_spec){"torchfile.txt", 0, 1, 0, 0, 32, 4, 0, 0});
	accepts("./torch:seed=1",
		(struct order_spec){"./torch:seed=1", 0, 1, 0, 0, 32, 4, 0, 0});
}

TEST(what_may_not)
{
	static const struct {
		const char *text, *says;
	} list[] = {
		{"", "the order must be torch, or the name of a file"},
		{"torch:", "unknown word ''"},
		{"torch:seed", "seed needs a number"},
		{"torch:seed=", "seed needs a number"},
		{"torch:seed=x", "'x' is not a whole number"},
		{"torch:seed=-1", "'-1' is not a whole number"},
		{"torch:seed=18446744073709551616", "is not between"},
		{"torch:world=0", "0 is not between 1 and 1048576"},
		{"torch:world=1048577", "is not between"},
		{"torch:world=4:rank=4", "rank 4 is not in a world of 4"},
		{"torch:rank=1", "rank 1 is not in a world of 1"},
		{"torch:rank=0-4:world=4", "rank 4 is not in a world of 4"},
		{"torch:rank=3-1:world=4", "3-1 is not a range"},
		{"torch:rank=1-:world=4", "'' is not a whole number"},
		{"torch:rank=-:world=4", "'' is not a whole number"},
		{"torch:batch=0", "batch: 0 is not between"},
		{"torch:workers=5000", "workers: 5000 is not between"},
		{"torch:drop_last=1", "drop-last takes no value"},
		{"torch:no-shuffle=", "no-shuffle takes no value"},
		{"torch:seed=1:seed=1", "seed is given twice"},
		{"torch:drop_last,drop-last", "drop-last is given twice"},
		{"torch:epoch=1",
		 "unknown word 'epoch': known are seed=, world="},
		{"torch:seed=1::world=2", "unknown word ''"},
		{"torch:seed=1                                                "
		 "                  ",
		 "is too long"},
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct order_spec s = {.seed = 77};
		struct error err = {0};

		CHECK_EQ_I(order_spec_parse(list[i].text, &s, &err), -EINVAL);
		if (!strstr(err.text, list[i].says))
			test_fail(__FILE__, __LINE__, "%s: %s", list[i].text,
				  err.text);
		CHECK_EQ_U(s.seed, 77);
	}
}

static void check_epoch(const char *text, uint64_t n, uint32_t epoch,
			const uint32_t *want, uint32_t length)
{
	uint32_t got[64] = {0};
	struct order_spec s;
	struct order o;

	CHECK_OK(order_spec_parse(text, &s, NULL));
	CHECK_OK(order_of_samples(&o, &s, n, NULL));
	CHECK_EQ_U(o.length, length);
	for (uint32_t k = 0; k <= length; k++) {
		CHECK(order_epoch(&o, epoch, k, got));
		CHECK_MEM(got, want, k * sizeof *got);
	}
}

#define EPOCH(text, n, epoch, ...)                                   \
	check_epoch(text, n, epoch, (const uint32_t[]){__VA_ARGS__}, \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

/* torch 1.13.1, DistributedSampler(range(n), world, rank). */
TEST(as_torch)
{
	EPOCH("torch:world=4:rank=0", 10, 0, 4, 3, 6);
	EPOCH("torch:world=4:rank=1", 10, 0, 1, 9, 2);
	EPOCH("torch:world=4:rank=2", 10, 0, 7, 0, 4);
	EPOCH("torch:world=4:rank=3", 10, 0, 5, 8, 1);
	EPOCH("torch:world=4:rank=0:drop_last", 10, 0, 4, 3);
	EPOCH("torch:world=4:rank=3:drop_last", 10, 0, 5, 8);
	EPOCH("torch", 10, 1, 5, 6, 1, 2, 0, 8, 9, 3, 7, 4);
	EPOCH("torch:seed=1", 10, 0, 5, 6, 1, 2, 0, 8, 9, 3, 7, 4);
	EPOCH("torch:seed=18446744073709551615", 10, 2, 5, 6, 1, 2, 0, 8, 9, 3,
	      7, 4);
	EPOCH("torch:world=8:no-shuffle", 3, 5, 0, 1, 2, 0, 1, 2, 0, 1);
	EPOCH("torch:world=8:rank=6-7:no-shuffle", 3, 0, 0, 1);
	EPOCH("torch:world=4:rank=0-1", 10, 0, 4, 1, 3, 9, 6, 2);
	EPOCH("torch", 1, 3, 0);
	check_epoch("torch:world=8:rank=0:drop_last", 3, 0, NULL, 0);
	check_epoch("torch", 0, 0, NULL, 0);
}

/* Heads and wholes are the same, whatever the size. */
TEST(heads)
{
	static uint32_t whole[20000], head[20000];

	for (unsigned i = 0; i < 300; i++) {
		uint64_t n = 1 + test_random() % 10000;
		uint32_t world = 1 + (uint32_t)(test_random() % 9);
		uint32_t rank = (uint32_t)(test_random() % world), k;
		struct order_spec s = {
			.world = world,
			.rank = rank,
			.ranks = 1 + (uint32_t)(test_random() % (world - rank)),
			.seed = test_random(),
			.drop_last = i % 2};
		struct order o;

		CHECK_OK(order_of_samples(&o, &s, n, NULL));
		CHECK(order_epoch(&o, i, o.length, whole));
		k = o.length ? (uint32_t)(test_random() % o.length) : 0;
		if (i % 3)
			k /= 16;
		CHECK(order_epoch(&o, i, k, head));
		CHECK_MEM(head, whole, k * sizeof *head);
	}
}

TEST(too_many)
{
	struct order_spec s = {.world = 1, .ranks = 1};
	struct error err = {0};
	struct order o;

	CHECK_EQ_I(order_of_samples(&o, &s, ORDER_SAMPLES_MAX + 1, &err),
		   -E2BIG);
	CHECK_EQ_I(order_of_samples(&o, &s, UINT64_MAX, &err), -E2BIG);
	CHECK_EQ_I(order_of_samples(&o, &s, ORDER_KEPT_MAX + 1, &err), -E2BIG);
	CHECK_EQ_I(order_of_list(&o, NULL, ORDER_KEPT_MAX + 1, &err), -E2BIG);
	s.world = 2;
	s.ranks = 1;
	CHECK_OK(order_of_samples(&o, &s, ORDER_SAMPLES_MAX, &err));
	CHECK_EQ_U(o.length, ORDER_SAMPLES_MAX / 2);
}

int main(void)
{
	RUN(what_may_be_said);
	RUN(what_may_not);
	RUN(as_torch);
	RUN(heads);
	RUN(too_many);
	return test_done();
}
