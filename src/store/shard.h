/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard of the cache: a hash table of entries, and the queues they stand in. */
#ifndef STORE_SHARD_H
#define STORE_SHARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Either READY, with a buffer and in a queue, or LOADING, with a flight. */
struct entry {
	uint64_t set, index;
	uint64_t tick; /* when it was put where it stands */
	uint64_t used; /* tick of its last use */
	struct entry *chain;
	struct entry *newer, *older; /* READY */
	struct buf *buf;             /* READY */
	struct flight *flight;       /* LOADING */
	/* What policy.c goes by. */
	uint32_t noted;       /* uses of the shard when a use last counted */
	uint8_t queue;        /* READY: enum shard_queue */
	uint8_t lives, turns; /* times it is still, was passed over */
	uint8_t weight;       /* what it takes to load, 1: as others */
	bool ahead;           /* loaded for somebody yet to come */
};

enum shard_queue {
	SHARD_YOUNG,
	SHARD_PROVEN,
	SHARD_QUEUES,
	SHARD_RETIRED = SHARD_QUEUES, /* no queue: ghosts of what went early */
	SHARD_GHOSTS
};
struct queue {
	struct entry *newest, *oldest;
	_Atomic uint64_t tail_tick; /* of `oldest`, UINT64_MAX: none; may be
				       read without the lock */
};
/* What was here, in which queue, and when it went. */
struct ghost {
	uint32_t mark, when;
};

struct shard {
	_Alignas(64) pthread_mutex_t lock; /* all below */
	struct entry **bucket;
	struct ghost *ghost;    /* some a bucket; NULL: none */
	uint64_t buckets, used; /* a power of two; entries in the table */
	struct queue queue[SHARD_QUEUES];
	uint64_t ready; /* entries in the queues */
	uint64_t hits, misses, evictions;
};

static inline uint64_t shard_hash(uint64_t set, uint64_t index)
{
	uint64_t h = index + set * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

/* With so many buckets at first, a power of two.  False when memory is out; shard_destroy
 * it even then. */
bool shard_init(struct shard *s, uint64_t buckets);
/* Drops the references of READY entries; there must be no others. */
void shard_destroy(struct shard *s);

/* What follows wants the lock held by the caller. */

struct entry *shard_find(const struct shard *s, uint64_t hash, uint64_t set,
			 uint64_t index);
/* Into and out of the table; keys are unique, entries the caller's. */
void shard_insert(struct shard *s, uint64_t hash, struct entry *e);
void shard_remove(struct shard *s, struct entry *e);
/* Into its queue (e->queue) as the newest, at `tick`; out of it.  Ticks of one
 * shard never decrease. */
void shard_list(struct shard *s, struct entry *e, uint64_t tick);
void shard_unlist(struct shard *s, struct entry *e);
/* Remember that an entry of this hash went from `queue`, or was retired, at `when`. */
void shard_ghost_add(struct shard *s, uint64_t hash, enum shard_queue queue,
		     uint32_t when);
/* Did one go from `queue` no longer than `most` before `when`?  It is forgotten then.
 * Two of a kind are remembered for each bucket; there are mistakes, few and harmless. */
bool shard_ghost_take(struct shard *s, uint64_t hash, enum shard_queue queue,
		      uint32_t when, uint32_t most);
/* Take out entries that do not count in `gauge`, nobody holds, and were last used
 * before `tick`: at most `most`, the first to go.  Chained; the caller's. */
struct entry *shard_shed(struct shard *s, const _Atomic uint64_t *gauge,
			 uint64_t tick, uint64_t most);
/* Abort unless table and queues are sound, and each hash is `which` modulo
 * `shards`.  Returns the bytes of READY entries that count in `gauge`; *young gets
 * those of the young ones added, and `beside` for each of them. */
uint64_t shard_verify(const struct shard *s, unsigned which, unsigned shards,
		      const _Atomic uint64_t *gauge, uint64_t beside,
		      uint64_t *young);

#endif
