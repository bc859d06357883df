/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard of the cache: a hash table of entries and their order of use. */
#ifndef STORE_SHARD_H
#define STORE_SHARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Either READY, with a buffer and listed, or LOADING, with a flight. */
struct entry {
	uint64_t set, index;
	uint64_t tick; /* last use */
	struct entry *chain;
	struct entry *newer, *older; /* READY */
	struct buf *buf;             /* READY */
	struct flight *flight;       /* LOADING */
};

struct shard {
	_Alignas(64) pthread_mutex_t lock; /* all below */
	struct entry **bucket;
	uint64_t buckets, used; /* a power of two; entries in the table */
	struct entry *newest, *oldest;
	_Atomic uint64_t tail_tick; /* of `oldest`, UINT64_MAX: none; may be
				       read without the lock */
	uint64_t ready;             /* entries in the list */
	uint64_t hits, misses, evictions;
};

static inline uint64_t shard_hash(uint64_t set, uint64_t index)
{
	uint64_t h = index + set * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

/* False when memory is out; shard_destroy it even then. */
bool shard_init(struct shard *s);
/* Drops the references of READY entries; there must be no others. */
void shard_destroy(struct shard *s);

/* What follows wants the lock held by the caller. */

struct entry *shard_find(const struct shard *s, uint64_t hash, uint64_t set,
			 uint64_t index);
/* Into and out of the table; keys are unique, entries the caller's. */
void shard_insert(struct shard *s, uint64_t hash, struct entry *e);
void shard_remove(struct shard *s, struct entry *e);
/* Into the list, as used at `tick`; out of it; used again at `tick`.  Ticks of
 * one shard never decrease. */
void shard_list(struct shard *s, struct entry *e, uint64_t tick);
void shard_unlist(struct shard *s, struct entry *e);
void shard_touch(struct shard *s, struct entry *e, uint64_t tick);
/* Take out entries that do not count in `gauge`, nobody holds, and were last used
 * before `tick`: the oldest ones, at most `most`.  Chained; the caller's. */
struct entry *shard_shed(struct shard *s, const _Atomic uint64_t *gauge,
			 uint64_t tick, uint64_t most);
/* Abort unless table and list are sound, and each hash is `which` modulo
 * `shards`.  Returns the bytes of READY entries that count in `gauge`. */
uint64_t shard_verify(const struct shard *s, unsigned which, unsigned shards,
		      const _Atomic uint64_t *gauge);

#endif
