/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in names of files: padded, or sorted as text. */
#include "views/name.h"

#include <errno.h>

#include "base/number.h"

unsigned view_width(uint64_t largest)
{
	unsigned n = digits_of(largest);

	return n < VIEW_WIDTH_MIN ? VIEW_WIDTH_MIN : n;
}

int view_read_number(const char **s, unsigned width, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width; i++) {
		char c = (*s)[i];

		if (c < '0' || c > '9' || v > (UINT64_MAX - 9) / 10)
			return -ENOENT;
		v = v * 10 + (uint64_t)(c - '0');
	}
	*s += width;
	*out = v;
	return 0;
}

/*
 * Return how many numbers below `n` begin with `prefix` (> 0).  In the tree of
 * prefixes, 10 to 19 are below 1, and 100 to 199 below these: a range for each length.
 */
static uint64_t decimals_below(uint64_t prefix, uint64_t n)
{
	uint64_t first = prefix, last = prefix, sum = 0;

	while (first < n) {
		sum += min_u64(last, n - 1) - first + 1;
		if (last > (UINT64_MAX - 9) / 10)
			break;
		first *= 10;
		last = last * 10 + 9;
	}
	return sum;
}

uint64_t view_decimal_at(uint64_t place, uint64_t n)
{
	uint64_t prefix = 1;

	if (!place--)
		return 0;
	while (place) {
		uint64_t below = decimals_below(prefix, n);

		if (place >= below) { /* go to the next sibling */
			place -= below;
			prefix++;
		} else {
			place--;
			prefix *= 10;
		}
	}
	return prefix;
}

uint64_t view_decimal_place(uint64_t number, uint64_t n)
{
	uint64_t place = 1, power = 1;

	if (!number)
		return 0;
	while (power <= number / 10)
		power *= 10;
	/* For each prefix, the shortest first: count its earlier siblings, then itself. */
	for (; power; power /= 10) {
		uint64_t prefix = number / power;

		for (uint64_t p = prefix < 10 ? 1 : prefix / 10 * 10;
		     p < prefix; p++)
			place += decimals_below(p, n);
		place += power > 1;
	}
	return place;
}

void view_whole_box(const struct view *v, const uint64_t *at, struct box *out)
{
	(void)at;
	tensor_whole_box(v->tensor, out);
}
