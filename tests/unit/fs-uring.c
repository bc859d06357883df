/* SPDX-License-Identifier: BSD-2-Clause */
/* When libfuse would speak through io_uring. */
#include "fuse/uring.h"

#include "test.h"

TEST(old_ones_do_not)
{
	CHECK(!uring_is_wanted(314, "1"));
	CHECK(!uring_is_wanted(317, "1"));
	CHECK(!uring_is_wanted(39, "1")); /* 3.9 */
}

TEST(new_ones_do_when_told_so)
{
	CHECK(uring_is_wanted(318, "1"));
	CHECK(uring_is_wanted(319, "2"));
	CHECK(uring_is_wanted(319, " 1"));
	CHECK(uring_is_wanted(400, "-1"));
}

TEST(and_not_otherwise)
{
	CHECK(!uring_is_wanted(318, NULL));
	CHECK(!uring_is_wanted(318, ""));
	CHECK(!uring_is_wanted(318, "0"));
	CHECK(!uring_is_wanted(318, "00"));
	CHECK(!uring_is_wanted(318, "yes"));
}

int main(void)
{
	RUN(old_ones_do_not);
	RUN(new_ones_do_when_told_so);
	RUN(and_not_otherwise);
	return test_done();
}
