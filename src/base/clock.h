/* SPDX-License-Identifier: BSD-2-Clause */
/* The monotonic clock, for durations and limits. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND UINT64_C(1000000000) /* nanoseconds */

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}

static inline double clock_seconds(void)
{
	return (double)clock_ns() / 1e9;
}

/* The time `ns` nanoseconds from now, for a condition variable that uses
 * CLOCK_MONOTONIC. */
static inline struct timespec clock_after(uint64_t ns)
{
	uint64_t at = clock_ns() + ns;

	return (struct timespec){.tv_sec = (time_t)(at / CLOCK_SECOND),
				 .tv_nsec = (long)(at % CLOCK_SECOND)};
}

#endif
