/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places of an order a rank gets, by the rules of
 * torch.utils.data.DistributedSampler. */
#ifndef BASE_SAMPLER_H
#define BASE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * In an order of n samples (n > 0), rank r of `world` gets the places r, r + world, and
 * so on.  All ranks get equally many: behind the last place the order begins again, as
 * often as necessary, or with drop_last the remainder is left out.  With in_turn each
 * sample is used once, and some ranks get one less.
 */
struct sampler {
	uint64_t n, world, rank;
	bool drop_last, in_turn;
};

/* The number of samples that this rank gets. */
static inline uint64_t sampler_count(const struct sampler *s)
{
	if (s->in_turn)
		return s->n > s->rank ? (s->n - s->rank - 1) / s->world + 1 : 0;
	return s->drop_last ? s->n / s->world : (s->n - 1) / s->world + 1;
}

/* The place in the order of this rank's k-th sample. */
static inline uint64_t sampler_place(const struct sampler *s, uint64_t k)
{
	return (k * s->world + s->rank) % s->n;
}

#endif
