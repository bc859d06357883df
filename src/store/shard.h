/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard of the cache: a hash table of entries, and the queues they stand in. */
#ifndef STORE_SHARD_H
#define STORE_SHARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* An entry is READY, with a buffer and in a queue, or LOADING, with a flight. */
struct entry {
	uint64_t set, index;
	uint64_t tick; /* clock when it was put into its place */
	uint64_t used; /* clock at its last use */
	struct entry *chain;
	struct entry *newer, *older; /* READY */
	struct buf *buf;             /* READY */
	struct flight *flight;       /* LOADING */
	/* For policy.c. */
	uint32_t noted; /* the shard's uses when a use of it last counted */
	uint8_t queue;  /* READY: enum shard_queue */
	uint8_t lives,
		turns;  /* times it will be passed over, was passed over */
	uint8_t weight; /* cost of loading; 1: as much as others */
	bool ahead;     /* loaded ahead of its reader, not used so far */
};

enum shard_queue {
	SHARD_YOUNG,
	SHARD_PROVEN,
	SHARD_QUEUES,
	SHARD_RETIRED =
		SHARD_QUEUES, /* not a queue: ghosts of retired entries */
	SHARD_GHOSTS
};
struct queue {
	struct entry *newest, *oldest;
	/* Tick of `oldest`, UINT64_MAX if there is none; may be read without the lock. */
	_Atomic uint64_t tail_tick;
};
/* A ghost: remembers that an entry was evicted or retired, from which queue, and when. */
struct ghost {
	uint32_t mark, when;
};

struct shard {
	_Alignas(64) pthread_mutex_t lock; /* protects all below */
	struct entry **bucket;
	struct ghost *ghost; /* several for each bucket; NULL: memory was out */
	uint64_t buckets,
		used; /* a power of two; number of entries in the table */
	struct queue queue[SHARD_QUEUES];
	uint64_t ready; /* number of entries in the queues */
	uint64_t hits, misses, evictions;
};

static inline uint64_t shard_hash(uint64_t set, uint64_t index)
{
	uint64_t h = index + set * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

/* Initialise with this many buckets, a power of two.  Return false if memory is out; call
 * shard_destroy even then. */
bool shard_init(struct shard *s, uint64_t buckets);
/* Drop the references of READY entries; there must be no LOADING ones. */
void shard_destroy(struct shard *s);

/* The caller of all below holds the lock. */

struct entry *shard_find(const struct shard *s, uint64_t hash, uint64_t set,
			 uint64_t index);
/* Put an entry into the table, or take it out.  Keys are unique; the caller owns the
 * entry. */
void shard_insert(struct shard *s, uint64_t hash, struct entry *e);
void shard_remove(struct shard *s, struct entry *e);
/* Put an entry into its queue (e->queue) as the newest, at `tick`, or take it out.  Ticks
 * of one shard never decrease. */
void shard_list(struct shard *s, struct entry *e, uint64_t tick);
void shard_unlist(struct shard *s, struct entry *e);
/* Leave a ghost: an entry with this hash went from `queue`, or was retired, at `when`. */
void shard_ghost_add(struct shard *s, uint64_t hash, enum shard_queue queue,
		     uint32_t when);
/* Return true if a ghost with this hash went from `queue` at most `most` before `when`;
 * it is then forgotten.  Only two for each bucket and queue are remembered; errors are
 * few and harmless. */
bool shard_ghost_take(struct shard *s, uint64_t hash, enum shard_queue queue,
		      uint32_t when, uint32_t most);
/* Take out at most `most` entries that do not count in `gauge`, that no reader holds, and
 * that were last used before `tick`, the first to be evicted first.  Return them as a
 * chain (e->chain), which the caller owns. */
struct entry *shard_shed(struct shard *s, const _Atomic uint64_t *gauge,
			 uint64_t tick, uint64_t most);
/* Abort unless table and queues are sound, and each hash is `which` modulo `shards`.
 * Return the bytes of READY entries that count in `gauge`; add those of the young ones to
 * *young, and `beside` for each young entry. */
uint64_t shard_verify(const struct shard *s, unsigned which, unsigned shards,
		      const _Atomic uint64_t *gauge, uint64_t beside,
		      uint64_t *young);

#endif
