/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that says where one shard ends and the next one begins. */
#ifndef SHARDS_CUT_H
#define SHARDS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct shards_cut {
	/* Number of shards, which differ by at most one sample; if 0, count and size
	 * apply. */
	uint64_t shards;
	uint64_t count; /* most samples in a shard; 0: any number */
	/* Most bytes of a shard's tar, uncompressed and with its end; one sample alone
	 * may be larger; 0: any number. */
	uint64_t size;
};
#define SHARDS_SIZE_USUAL (UINT64_C(1) << 30)
/* Return *c, with SHARDS_SIZE_USUAL as the size if *c says nothing. */
struct shards_cut shards_cut_default(const struct shards_cut *c);
/* Return 0, or -EINVAL if *c sets both the number of shards and a limit for each. */
int shards_cut_check(const struct shards_cut *c, struct error *err);
/*
 * Return true if a sample that takes `bytes` in the tar begins another shard.  There
 * are `n` samples; shard number `last` (from 0) is the last one so far and has
 * `samples`, which take `taken` bytes.
 */
bool shards_cut_here(const struct shards_cut *c, uint64_t n, uint64_t last,
		     uint64_t samples, uint64_t taken, uint64_t bytes);

/* ---- samples that all take the same bytes -------------------------------- */

/* Return the number of shards that the rule above makes of `n` samples that take
 * `bytes` each (both > 0); 0 if there are fewer samples than shards.  n * bytes < 2^62. */
uint64_t shards_even(const struct shards_cut *c, uint64_t n, uint64_t bytes);
/* Set the first sample of shard k and its number of samples. */
void shards_even_at(const struct shards_cut *c, uint64_t n, uint64_t bytes,
		    uint64_t k, uint64_t *first, uint64_t *samples);

#endif
