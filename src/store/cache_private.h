/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the cache: what loading and the policy of eviction share. */
#ifndef STORE_CACHE_PRIVATE_H
#define STORE_CACHE_PRIVATE_H

#include "store/cache.h"
#include "store/gate.h"
#include "store/shard.h"

#define SHARDS 16
/* Bytes of an entry in addition to its buffer's: the entry, its share of the buckets and
 * ghosts, the buffer's header, and malloc's overhead. */
#define ENTRY_COST (sizeof(struct entry) + sizeof(struct buf) + 96)

#define PACES 256
struct cache {
	struct shard shard[SHARDS];
	uint64_t budget, known;
	struct gate gate;
	/* Hits read the clock, loads advance it. */
	_Alignas(64) _Atomic uint64_t clock;
	_Alignas(64) _Atomic uint64_t alive, reserved;
	_Atomic uint64_t ready; /* number of READY entries, to bound eviction */
	/* Bytes of young entries, ENTRY_COST included; changed under their shards' locks. */
	_Atomic uint64_t young;
	_Atomic uint64_t target; /* bytes that young entries may take */
	/* Bytes that were evicted from each queue, and retired, so far. */
	_Atomic uint64_t gone[SHARD_GHOSTS];
	_Atomic uint32_t pace, paces[PACES]; /* see policy.c */
};

static inline uint64_t cache_now(struct cache *c)
{
	return atomic_load_explicit(&c->clock, memory_order_relaxed);
}

/* Free an entry that is out of every queue and table. */
void cache_entry_gone(struct cache *c, struct entry *e);

/* Initialise the policy; called before all others. */
void policy_init(struct cache *c);
/* Return the weight of an entry: 1 if it takes as long to load as others, more if it
 * takes longer.  It took `ns` nanoseconds for `bytes` bytes of that set this time. */
uint8_t policy_weigh(struct cache *c, uint64_t set, uint64_t ns,
		     uint64_t bytes);
/* A READY entry joins a queue, is used, or leaves its queue.  The caller holds its
 * shard's lock. */
void policy_enter(struct cache *c, struct shard *s, uint64_t hash,
		  struct entry *e);
void policy_use(struct cache *c, struct shard *s, struct entry *e);
void policy_leave(struct cache *c, struct shard *s, struct entry *e);
/* Return true if an entry that no reader holds may leave before its turn.  It is then a
 * ghost already, and the caller must remove it.  The caller holds its shard's lock. */
bool policy_retire(struct cache *c, struct shard *s, struct entry *e);
/* Account for an entry that the shard has taken out. */
void policy_left(struct cache *c, const struct entry *e);
/* Evict until the budget holds, or nothing more can be evicted.  Called without any
 * lock. */
void policy_evict(struct cache *c);

#endif
