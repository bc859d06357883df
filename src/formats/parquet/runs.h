/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in runs and packed bits: levels, indices and booleans of Parquet pages. */
#ifndef FORMATS_PARQUET_RUNS_H
#define FORMATS_PARQUET_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts with at, end and width; all else zero. */
struct parquet_runs {
	const unsigned char *at, *end;
	unsigned width; /* bits of a value, 0 to 32 */
	uint64_t run;   /* how many times `value` follows; */
	uint32_t value;
	uint64_t
		packed; /* or how many packed ones, from bit `bit` of `at` on */
	unsigned bit;
};
/* The next one; false: there is none, or it is damaged. */
bool parquet_runs_next(struct parquet_runs *h, uint32_t *out);

#endif
