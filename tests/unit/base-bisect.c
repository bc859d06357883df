/* SPDX-License-Identifier: BSD-2-Clause */
/* The least number for which a condition holds, of every range and every answer. */
#include "base/bisect.h"

#include "test.h"

TEST(every_answer_of_small_ranges)
{
	for (uint64_t lo = 0; lo < 6; lo++)
		for (uint64_t hi = lo; hi < 20; hi++)
			for (uint64_t least = lo; least <= hi; least++) {
				struct bisect b = bisect_in(lo, hi);

				while (bisect_next(&b)) {
					CHECK(b.mid >= lo && b.mid < hi);
					bisect_answer(&b, b.mid >= least);
				}
				CHECK_EQ_U(b.lo, least);
			}
}
TEST(the_largest_numbers_there_are)
{
	struct bisect b = bisect_in(0, UINT64_MAX);
	unsigned asked = 0;

	for (; bisect_next(&b); asked++)
		bisect_answer(&b, b.mid >= UINT64_MAX - 1);
	CHECK_EQ_U(b.lo, UINT64_MAX - 1);
	CHECK(asked <= 64);
}

int main(void)
{
	RUN(every_answer_of_small_ranges);
	RUN(the_largest_numbers_there_are);
	return test_done();
}
