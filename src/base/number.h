/* SPDX-License-Identifier: BSD-2-Clause */
/* Arithmetic on hostile numbers: checked, and a few shapes of rounding. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* True when the product or sum does not fit; *out is set only when it does. */
static inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t r;

	if (__builtin_mul_overflow(a, b, &r))
		return true;
	*out = r;
	return false;
}
static inline bool add_overflows(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t r;

	if (__builtin_add_overflow(a, b, &r))
		return true;
	*out = r;
	return false;
}
static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
/* Division that rounds up; b > 0. */
static inline uint64_t div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}
/* How many decimal digits `v` has; 1 for 0. */
static inline unsigned digits_of(uint64_t v)
{
	unsigned n = 1;

	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}
/* Write the decimal digits of `v` to `out`, at most DIGITS_MAX, without a terminator; return
 * how many. */
#define DIGITS_MAX 20
static inline unsigned digits_put(char *out, uint64_t v)
{
	unsigned n = digits_of(v);

	for (unsigned i = n; i-- > 0; v /= 10)
		out[i] = (char)('0' + v % 10);
	return n;
}

#endif
