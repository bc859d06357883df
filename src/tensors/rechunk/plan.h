/* SPDX-License-Identifier: BSD-2-Clause */
/* In what order to make new chunks, so that old ones are decoded seldom. */
#ifndef TENSORS_RECHUNK_PLAN_H
#define TENSORS_RECHUNK_PLAN_H

#include <stdint.h>

#include "base/error.h"
#include "base/number.h"
#include "tensor/grid.h"

/*
 * New chunks are made tile by tile, a tile being a box of whole new chunks that fit in
 * memory together; each old chunk that a tile touches is decoded once for it.
 */
struct rechunk_plan {
	uint64_t tile[RANK_MAX]; /* new chunks along each axis, >= 1 */
	uint64_t tiles;          /* how many */
	uint64_t chunks;  /* old chunks that there are; saturating, as is: */
	uint64_t decodes; /* how often one of them is decoded, in all */
};
/*
 * The plan with the fewest decodes (nearly: ways to cut an axis that differ by a few per
 * cent are not all looked at), and of these the one with the smallest tiles.  Lengths are
 * in elements, > 0; `most` >= 1 new chunks fit.  Pure.  -ENOMEM.
 */
int rechunk_plan_make(struct rechunk_plan *p, unsigned rank,
		      const uint64_t *shape, const uint64_t *in,
		      const uint64_t *out, uint64_t most, struct error *err);
/* Set all but p->tile, by that. */
void rechunk_plan_count(struct rechunk_plan *p, unsigned rank,
			const uint64_t *shape, const uint64_t *in,
			const uint64_t *out);
/* Intervals of length `in` that pieces of length `piece` touch, summed over the pieces
 * that [0, shape) is cut into. */
uint64_t rechunk_touched(uint64_t shape, uint64_t in, uint64_t piece);
/* a * b, or UINT64_MAX where that overflows. */
static inline uint64_t rechunk_times(uint64_t a, uint64_t b)
{
	uint64_t r;

	return mul_overflows(a, b, &r) ? UINT64_MAX : r;
}

#endif
