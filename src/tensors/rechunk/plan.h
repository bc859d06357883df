/* SPDX-License-Identifier: BSD-2-Clause */
/* An order of making new chunks that decodes old ones as seldom as possible. */
#ifndef TENSORS_RECHUNK_PLAN_H
#define TENSORS_RECHUNK_PLAN_H

#include <stdint.h>

#include "base/error.h"
#include "base/number.h"
#include "tensor/grid.h"

/*
 * New chunks are made tile by tile.  A tile is a box of whole new chunks that fit in
 * memory together; each old chunk that it touches is decoded once for it.
 */
struct rechunk_plan {
	uint64_t tile[RANK_MAX]; /* new chunks along each axis, >= 1 */
	uint64_t tiles;          /* number of tiles */
	uint64_t chunks;         /* number of old chunks; saturates */
	uint64_t decodes;        /* decodes of old chunks in total; saturates */
};
/*
 * Find the plan with the fewest decodes (nearly: ways to cut an axis that differ by a few
 * percent are not all tried), and among these the one with the smallest tiles.  Lengths
 * are in elements, > 0; `most` >= 1 new chunks fit in memory.  Pure.  Return 0 or
 * -ENOMEM.
 */
int rechunk_plan_make(struct rechunk_plan *p, unsigned rank,
		      const uint64_t *shape, const uint64_t *in,
		      const uint64_t *out, uint64_t most, struct error *err);
/* Compute everything else of a plan from p->tile. */
void rechunk_plan_count(struct rechunk_plan *p, unsigned rank,
			const uint64_t *shape, const uint64_t *in,
			const uint64_t *out);
/* Cut [0, shape) into pieces of length `piece`.  Return the sum over the pieces of the
 * number of intervals of length `in` that each touches. */
uint64_t rechunk_touched(uint64_t shape, uint64_t in, uint64_t piece);
/* A * b, or UINT64_MAX where that overflows. */
static inline uint64_t rechunk_times(uint64_t a, uint64_t b)
{
	uint64_t r;

	return mul_overflows(a, b, &r) ? UINT64_MAX : r;
}

#endif
