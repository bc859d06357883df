/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache from inside: what loading and choosing whom to evict share. */
#ifndef STORE_CACHE_PRIVATE_H
#define STORE_CACHE_PRIVATE_H

#include "store/cache.h"
#include "store/gate.h"
#include "store/shard.h"

#define SHARDS 16
/* Beside the bytes: entry, its share of the buckets and ghosts, the buffer's
 * header, and what malloc adds to them. */
#define ENTRY_COST (sizeof(struct entry) + sizeof(struct buf) + 96)

#define PACES 256
struct cache {
	struct shard shard[SHARDS];
	uint64_t budget, known;
	struct gate gate;
	/* Hits read the clock, loads advance it. */
	_Alignas(64) _Atomic uint64_t clock;
	_Alignas(64) _Atomic uint64_t alive, reserved;
	_Atomic uint64_t ready;  /* entries, for the bound of eviction */
	_Atomic uint64_t young;  /* bytes of young entries, ENTRY_COST as well;
				   changed under their shards' locks */
	_Atomic uint64_t target; /* bytes that young entries may have */
	_Atomic uint64_t
		gone[SHARD_GHOSTS]; /* bytes that were evicted, retired */
	_Atomic uint32_t pace, paces[PACES]; /* see policy.c */
};

static inline uint64_t cache_now(struct cache *c)
{
	return atomic_load_explicit(&c->clock, memory_order_relaxed);
}

/* An entry that is out of every queue and table. */
void cache_entry_gone(struct cache *c, struct entry *e);

/* Before anything else. */
void policy_init(struct cache *c);
/* What it takes to load an entry: `ns` for `bytes` of that set this time; 1 for as
 * much as others take, more for more. */
uint8_t policy_weigh(struct cache *c, uint64_t set, uint64_t ns,
		     uint64_t bytes);
/* A READY entry joins a queue, is used, leaves it; under its shard's lock. */
void policy_enter(struct cache *c, struct shard *s, uint64_t hash,
		  struct entry *e);
void policy_use(struct cache *c, struct shard *s, struct entry *e);
void policy_leave(struct cache *c, struct shard *s, struct entry *e);
/* May it, which nobody holds, leave before its time?  It is known as a ghost then, and
 * has to. */
bool policy_retire(struct cache *c, struct shard *s, struct entry *e);
/* It was taken out by the shard. */
void policy_left(struct cache *c, const struct entry *e);
/* Evict until the budget holds, or nothing can be: without any lock. */
void policy_evict(struct cache *c);

#endif
