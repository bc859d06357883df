/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs and packed bits: levels, indices and booleans of Parquet pages. */
/* See Encodings.md of parquet-format, "RLE / Bit-packing Hybrid". */
#ifndef FORMATS_PARQUET_RUNS_H
#define FORMATS_PARQUET_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* To begin, set at, end and width, and all else to zero. */
struct parquet_runs {
	const unsigned char *at, *end;
	unsigned width; /* bits of a value, 0 to 32 */
	uint64_t run;   /* how many times `value` follows */
	uint32_t value;
	/* Else how many packed values follow, from bit `bit` of `at` on. */
	uint64_t packed;
	unsigned bit;
};
/* Set *out to the next value; return false if there is none or the data are damaged. */
bool parquet_runs_next(struct parquet_runs *h, uint32_t *out);

#endif
