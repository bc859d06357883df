/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places of an order are a rank's: torch.utils.data.DistributedSampler's arithmetic. */
#ifndef BASE_SAMPLER_H
#define BASE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of an order of n samples (n > 0) rank r of `world` has the places r, r + world, ...  All
 * have equally many: behind the last place the first come again, as often as it takes, or
 * with drop_last what is left over is nobody's.  in_turn: each sample once, and some ranks
 * have one less.
 */
struct sampler {
	uint64_t n, world, rank;
	bool drop_last, in_turn;
};

/* How many a rank has. */
static inline uint64_t sampler_count(const struct sampler *s)
{
	if (s->in_turn)
		return s->n > s->rank ? (s->n - s->rank - 1) / s->world + 1 : 0;
	return s->drop_last ? s->n / s->world : (s->n - 1) / s->world + 1;
}

/* The place in the order that its k-th is at. */
static inline uint64_t sampler_place(const struct sampler *s, uint64_t k)
{
	return (k * s->world + s->rank) % s->n;
}

#endif
