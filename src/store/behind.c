/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks that a forward reader is through with: kept for a while, then dropped. */
/*
 * That all of a chunk was handed out is counted in bytes, and some are handed out twice:
 * what is pushed while it is asked for, or read again.  Where a row of frames touches many
 * chunks, all of them seem finished a little early, and the next frame wants every one.
 * So what was read since it was put on the list is not dropped yet.
 */
#include "store/behind.h"

#include "base/number.h"

#define BEHIND (UINT64_C(256) << 20)
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

/* With the lock. */
static void put(struct behind *b, const struct behind_chunk *c)
{
	b->ring[(b->first + b->n++) % BEHIND_CHUNKS] = *c;
	b->bytes += c->bytes;
}

static struct behind_chunk take(struct behind *b)
{
	struct behind_chunk c = b->ring[b->first];

	b->bytes -= c.bytes;
	b->first = (b->first + 1) % BEHIND_CHUNKS;
	b->n--;
	return c;
}

void behind_add(struct behind *b, uint64_t set, uint64_t index, uint64_t bytes,
		size_t served)
{
	const struct behind_chunk new = {set, index, bytes, served};
	struct behind_chunk old[2];
	unsigned n = 0;

	pthread_mutex_lock(&b->lock);
	put(b, &new);
	while (n < 2 && (b->n == BEHIND_CHUNKS || b->bytes > b->most))
		old[n++] = take(b);
	pthread_mutex_unlock(&b->lock);
	while (n--) {
		if (cache_drop_idle(b->cache, old[n].set, old[n].index,
				    &old[n].served))
			continue;
		pthread_mutex_lock(&b->lock);
		/* Else it is forgotten, and the cache's own affair. */
		if (b->n < BEHIND_CHUNKS - 2)
			put(b, &old[n]);
		pthread_mutex_unlock(&b->lock);
	}
}
