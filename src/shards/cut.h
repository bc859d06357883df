/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sample is in which shard. */
#ifndef SHARDS_CUT_H
#define SHARDS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct shards_cut {
	uint64_t
		shards; /* so many, which differ by one sample at most; else 0: */
	uint64_t count; /* samples in a shard, at most; 0: any number */
	uint64_t
		size; /* bytes of a shard's tar (uncompressed, all of it), at most;
			    a single sample may be larger; 0: any */
};
#define SHARDS_SIZE_USUAL (UINT64_C(1) << 30)
/* Where nothing is said, shards are of SHARDS_SIZE_USUAL. */
struct shards_cut shards_cut_usual(const struct shards_cut *c);
/* -EINVAL: a number of shards, and what is in them. */
int shards_cut_check(const struct shards_cut *c, struct error *err);
/*
 * Does a sample that takes `bytes` begin another shard?  There are `n` samples, shard number
 * `last` (from 0) is the last one and has `samples`, which take `taken` bytes.
 */
bool shards_cut_here(const struct shards_cut *c, uint64_t n, uint64_t last,
		     uint64_t samples, uint64_t taken, uint64_t bytes);

/* ---- samples that all take the same bytes -------------------------------- */

/* So many shards as the rule above makes of `n` samples that take `bytes` each (both
 * > 0); 0: it cannot (fewer samples than shards).  n * bytes < 2^62. */
uint64_t shards_even(const struct shards_cut *c, uint64_t n, uint64_t bytes);
/* The samples of shard k. */
void shards_even_at(const struct shards_cut *c, uint64_t n, uint64_t bytes,
		    uint64_t k, uint64_t *first, uint64_t *samples);

#endif
