/* SPDX-License-Identifier: BSD-2-Clause */
/* An array that is longer than its stored data: which of its bytes exist. */
#ifndef TENSOR_PADDED_H
#define TENSOR_PADDED_H

#include "tensor/grid.h"

/* An array of `full` elements along each axis, of `elem` bytes each.  Elements below
 * `there` along every axis are stored; all others are fill value. */
struct padded {
	unsigned rank;
	uint32_t elem;
	uint64_t full[RANK_MAX], there[RANK_MAX]; /* there <= full */
};
/*
 * Look up byte `off` of the array in C order, which has to be below its end.  Return
 * true if that byte is stored, with *inside its place among the stored bytes (also in C
 * order).  Set *run to how many bytes from `off` on are stored, or are not stored, as
 * this one.
 */
bool padded_run(const struct padded *p, uint64_t off, uint64_t *inside,
		uint64_t *run);

#endif
