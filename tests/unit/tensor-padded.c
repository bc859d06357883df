/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that are longer than what is stored of them, against naive indexing. */
#include "tensor/padded.h"
#include "test.h"

static uint64_t rnd(uint64_t below)
{
	return test_random() % below;
}

/* Does byte `off` exist, and where among those that do? */
static bool naive(const struct padded *p, uint64_t off, uint64_t *inside)
{
	uint64_t at[RANK_MAX], e = off / p->elem;
	bool is = true;

	for (unsigned i = p->rank; i-- > 0;) {
		at[i] = e % p->full[i];
		e /= p->full[i];
		is = is && at[i] < p->there[i];
	}
	*inside = 0;
	for (unsigned i = 0; i < p->rank; i++)
		*inside = *inside * p->there[i] + at[i];
	*inside = *inside * p->elem + off % p->elem;
	return is;
}

static uint64_t random_array(struct padded *p)
{
	uint64_t bytes;

	*p = (struct padded){.rank = (unsigned)rnd(5),
			     .elem = 1 + (uint32_t)rnd(4)};
	bytes = p->elem;
	for (unsigned i = 0; i < p->rank; i++) {
		p->full[i] = 1 + rnd(5);
		p->there[i] = rnd(3) ? p->full[i] : rnd(p->full[i] + 1);
		bytes *= p->full[i];
	}
	return bytes;
}

TEST(runs_equal_naive_indexing)
{
	for (int round = 0; round < 4000; round++) {
		struct padded p;
		uint64_t bytes = random_array(&p), run, inside, want;

		for (uint64_t off = 0; off < bytes; off += run) {
			bool is = padded_run(&p, off, &inside, &run);

			CHECK(run > 0 && run <= bytes - off);
			for (uint64_t k = 0; k < run; k++) {
				CHECK_EQ_I(naive(&p, off + k, &want), is);
				if (is)
					CHECK_EQ_I(inside + k, want);
			}
		}
	}
}

/* A run ends only where the next byte is of the other kind, or lies elsewhere. */
TEST(runs_are_as_long_as_can_be)
{
	for (int round = 0; round < 2000; round++) {
		struct padded p;
		uint64_t bytes = random_array(&p), run, a, b = 0;

		for (uint64_t off = 0; off < bytes; off++) {
			bool is = padded_run(&p, off, &a, &run);

			if (off + run < bytes && is)
				CHECK(!naive(&p, off + run, &b) ||
				      b != a + run);
		}
	}
}

int main(void)
{
	RUN(runs_equal_naive_indexing);
	RUN(runs_are_as_long_as_can_be);
	return test_done();
}
