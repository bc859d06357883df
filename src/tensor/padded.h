/* SPDX-License-Identifier: BSD-2-Clause */
/* An array that is longer than what is stored of it: which bytes there are. */
#ifndef TENSOR_PADDED_H
#define TENSOR_PADDED_H

#include "tensor/grid.h"

/* An array of `full` elements of `elem` bytes along its axes.  Those below `there`
 * along every axis exist; all others are fill value. */
struct padded {
	unsigned rank;
	uint32_t elem;
	uint64_t full[RANK_MAX], there[RANK_MAX]; /* there <= full */
};
/*
 * Look at byte `off` of the array in C order; it has to be below its end.  Returns
 * true when that byte exists: then *inside is its place among the bytes that
 * exist (in C order, too).  *run is how many bytes from `off` on exist, or do not,
 * as this one.
 */
bool padded_run(const struct padded *p, uint64_t off, uint64_t *inside,
		uint64_t *run);

#endif
