/* SPDX-License-Identifier: BSD-2-Clause */
/* shuffle: what torch.randperm gave, and that it is a permutation. */
#include "base/shuffle.h"

#include "test.h"

/* torch 1.13.1: torch.randperm(n, generator=torch.Generator().manual_seed(seed)) */
TEST(as_torch)
{
	static const struct {
		uint64_t n, seed;
		uint64_t want[16];
	} list[] = {
		{10, 0, {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}},
		{10, 1, {5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
		{10, UINT64_C(1) << 32 | 1, {5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
		{16, 0, {12, 10, 9, 6, 11, 8, 13, 5, 2, 14, 15, 0, 4, 3, 7, 1}},
		{1, 7, {0}},
	};
	uint64_t got[16];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		shuffle_order(got, list[i].n, list[i].seed);
		CHECK_MEM(got, list[i].want, list[i].n * sizeof *got);
	}
	shuffle_order(NULL, 0, 1);
}

TEST(is_a_permutation)
{
	enum { N = 5000 };
	static uint64_t got[N];
	static bool seen[N];

	shuffle_order(got, N, 42);
	for (unsigned i = 0; i < N; i++) {
		CHECK(got[i] < N && !seen[got[i]]);
		seen[got[i]] = true;
	}
}

/* In 32 bits, and the head alone, for every length of it. */
TEST(the_same_in_less)
{
	enum { N = 3000 };
	static uint64_t want[N];
	static uint32_t got[N];

	for (uint32_t n = 0; n <= N; n = n < 12 ? n + 1 : n * 3 / 2) {
		shuffle_order(want, n, n + 7);
		shuffle_order_32(got, n, n + 7);
		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ_U(got[i], want[i]);
		for (uint32_t k = 0; k <= n; k += 1 + k / 4) {
			memset(got, 0xff, sizeof got);
			CHECK(shuffle_head(got, k, n, n + 7));
			for (uint32_t i = 0; i < k; i++)
				CHECK_EQ_U(got[i], want[i]);
			CHECK(k == N || got[k] == UINT32_MAX);
		}
		CHECK(shuffle_head(got, n, n, n + 7));
		CHECK(n == 0 || got[n - 1] == want[n - 1]);
	}
}

int main(void)
{
	RUN(as_torch);
	RUN(is_a_permutation);
	RUN(the_same_in_less);
	return test_done();
}
