/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search over a range of integers with a monotone condition. */
#ifndef BASE_BISECT_H
#define BASE_BISECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Find the least number in [lo, hi) for which a condition holds that is false for all
 * smaller numbers and true for all larger ones; `hi` if it holds for none:
 *
 *	struct bisect b = bisect_in(0, n);
 *
 *	while (bisect_next(&b))
 *		bisect_answer(&b, start[b.mid] >= wanted);
 *	return b.lo;
 */
struct bisect {
	uint64_t lo, hi; /* the answer is in [lo, hi] */
	uint64_t mid;    /* the number that is asked about now */
};

static inline struct bisect bisect_in(uint64_t lo, uint64_t hi)
{
	return (struct bisect){lo, hi, lo};
}
/* Set b->mid to the next number to ask about, or return false: b->lo is the answer. */
static inline bool bisect_next(struct bisect *b)
{
	b->mid = b->lo + (b->hi - b->lo) / 2;
	return b->lo < b->hi;
}
/* Record whether the condition holds for b->mid, and narrow the range. */
static inline void bisect_answer(struct bisect *b, bool holds)
{
	if (holds)
		b->hi = b->mid;
	else
		b->lo = b->mid + 1;
}

#endif
