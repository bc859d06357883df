/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a rechunk: decodes counted by hand, and what memory saves. */

#include "base/number.h"
#include "tensors/rechunk/plan.h"
#include "test.h"

/* Walk along the axis, piece by piece. */
static uint64_t count_touched(uint64_t shape, uint64_t in, uint64_t piece)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at < shape; at += piece)
		n += (min_u64(at + piece, shape) - 1) / in - at / in + 1;
	return n;
}

TEST(touched)
{
	for (uint64_t shape = 1; shape < 40; shape++)
		for (uint64_t in = 1; in < 45; in++)
			for (uint64_t piece = 1; piece < 45; piece++)
				CHECK_EQ_U(rechunk_touched(shape, in, piece),
					   count_touched(shape, in, piece));
}

static void plan(struct rechunk_plan *p, unsigned rank, const uint64_t *shape,
		 const uint64_t *in, const uint64_t *out, uint64_t most)
{
	uint64_t n = 1, decodes = 1;

	CHECK_OK(rechunk_plan_make(p, rank, shape, in, out, most, NULL));
	for (unsigned i = 0; i < rank; i++) {
		CHECK(p->tile[i] >= 1);
		n *= p->tile[i];
		decodes *= count_touched(shape[i], in[i], p->tile[i] * out[i]);
	}
	CHECK(n <= most);
	CHECK_EQ_U(p->decodes, decodes);
	CHECK(p->decodes >= p->chunks);
}

/* The best of all tiles there are. */
static uint64_t best(unsigned rank, const uint64_t *shape, const uint64_t *in,
		     const uint64_t *out, uint64_t most)
{
	uint64_t least = UINT64_MAX;

	if (!rank)
		return 1;
	for (uint64_t n = 1; n <= most && n <= div_up(shape[0], out[0]); n++) {
		uint64_t here =
			count_touched(shape[0], in[0], n * out[0]) *
			best(rank - 1, shape + 1, in + 1, out + 1, most / n);

		least = min_u64(least, here);
	}
	return least;
}

TEST(is_the_best)
{
	for (unsigned round = 0; round < 3000; round++) {
		unsigned rank = 1 + (unsigned)(test_random() % 3);
		uint64_t shape[3], in[3], out[3], most, least;
		struct rechunk_plan p;

		for (unsigned i = 0; i < rank; i++) {
			shape[i] = 1 + test_random() % 40;
			in[i] = 1 + test_random() % 40;
			out[i] = 1 + test_random() % 12;
		}
		most = 1 + test_random() % 200;
		plan(&p, rank, shape, in, out, most);
		least = best(rank, shape, in, out, most);
		CHECK(p.decodes >= least);
		if ((double)p.decodes > 1.1 * (double)least)
			test_fail(__FILE__, __LINE__,
				  "%" PRIu64 " decodes, %" PRIu64 " would do",
				  p.decodes, least);
	}
}

#define PLAN(p, most, ...)                                     \
	do {                                                   \
		static const uint64_t abc[3][4] = __VA_ARGS__; \
		plan(p, 4, abc[0], abc[1], abc[2], most);      \
	} while (0)

/* Blocks of 4D data into frames, and back. */
TEST(examples)
{
	struct rechunk_plan p;

	/* As soon as a row of blocks fits, each is decoded once. */
	PLAN(&p, 1024,
	     {{256, 256, 256, 256}, {32, 32, 32, 32}, {1, 1, 256, 256}});
	CHECK_EQ_U(p.decodes, 4096 * UINT64_C(1));
	CHECK_EQ_U(p.tile[0] * p.tile[1], 1024);
	PLAN(&p, 512,
	     {{256, 256, 256, 256}, {32, 32, 32, 32}, {1, 1, 256, 256}});
	CHECK_EQ_U(p.decodes, 2 * 4096);
	PLAN(&p, 1, {{256, 256, 256, 256}, {32, 32, 32, 32}, {1, 1, 256, 256}});
	CHECK_EQ_U(p.decodes, 1024 * 4096);
	PLAN(&p, 64,
	     {{256, 256, 256, 256}, {1, 1, 256, 256}, {32, 32, 32, 32}});
	CHECK_EQ_U(p.decodes, 65536);
	/* Nothing to be gained from memory: the smallest tile. */
	PLAN(&p, 1000000,
	     {{100, 100, 64, 64}, {10, 10, 64, 64}, {10, 10, 64, 64}});
	CHECK_EQ_U(p.decodes, 100);
	CHECK_EQ_U(p.tile[0] * p.tile[1] * p.tile[2] * p.tile[3], 1);
	/* Cut within old chunks that do not fit. */
	PLAN(&p, 10, {{1, 1, 4096, 4096}, {1, 1, 4096, 4096}, {1, 1, 64, 64}});
	CHECK_EQ_U(p.decodes, 416);
}

/* Numbers that hardly fit, and axes that are many. */
TEST(extremes)
{
	uint64_t shape[RANK_MAX], in[RANK_MAX], out[RANK_MAX];
	struct rechunk_plan p;

	for (unsigned i = 0; i < RANK_MAX; i++) {
		shape[i] = 3;
		in[i] = 2;
		out[i] = 1;
	}
	plan(&p, RANK_MAX, shape, in, out, 1);
	plan(&p, RANK_MAX, shape, in, out, 4096);
	shape[0] = UINT64_C(1) << 60;
	in[0] = UINT64_C(1) << 59;
	out[0] = 1;
	CHECK_OK(rechunk_plan_make(&p, 1, shape, in, out, 1000, NULL));
	CHECK(p.tile[0] <= 1000);
	out[0] = 999983;
	CHECK_OK(rechunk_plan_make(&p, 1, shape, in, out, UINT64_MAX, NULL));
	CHECK_EQ_U(p.decodes, 2);
	in[0] = 30030 * 17;
	out[0] = 1;
	CHECK_OK(rechunk_plan_make(&p, 1, shape, in, out, 30030, NULL));
	CHECK(p.decodes <= 2 * p.chunks * 17);
}

int main(void)
{
	RUN(touched);
	RUN(is_the_best);
	RUN(examples);
	RUN(extremes);
	return test_done();
}
