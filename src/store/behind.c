/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks that a forward reader is through with: kept for a while, then dropped. */
#include "store/behind.h"

#include "base/number.h"

#define BEHIND (UINT64_C(32) << 20)
#define BEHIND_SHARE 8

void behind_init(struct behind *b, struct cache *cache, uint64_t budget)
{
	pthread_mutex_init(&b->lock, NULL);
	b->cache = cache;
	b->most = min_u64(BEHIND, budget / BEHIND_SHARE);
	b->first = b->n = 0;
	b->bytes = 0;
}

void behind_destroy(struct behind *b)
{
	pthread_mutex_destroy(&b->lock);
}

void behind_add(struct behind *b, uint64_t set, uint64_t index, uint64_t bytes)
{
	struct {
		uint64_t set, index;
	} old[2];
	unsigned n = 0, at;

	pthread_mutex_lock(&b->lock);
	at = (b->first + b->n++) % BEHIND_CHUNKS;
	b->ring[at].set = set;
	b->ring[at].index = index;
	b->ring[at].bytes = bytes;
	b->bytes += bytes;
	while (n < 2 && (b->n == BEHIND_CHUNKS || b->bytes > b->most)) {
		old[n].set = b->ring[b->first].set;
		old[n++].index = b->ring[b->first].index;
		b->bytes -= b->ring[b->first].bytes;
		b->first = (b->first + 1) % BEHIND_CHUNKS;
		b->n--;
	}
	pthread_mutex_unlock(&b->lock);
	while (n--)
		cache_drop(b->cache, old[n].set, old[n].index);
}
