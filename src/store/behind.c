/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of which all was handed out: kept for a while, then dropped. */
/*
 * The kernel's page cache has what readers were given.  To have it here as well is of use to
 * nobody, and takes memory from that page cache.
 *
 * That all of a chunk was handed out is counted in bytes, and some are handed out twice:
 * what is pushed while it is asked for, or read again.  Where a row of frames touches many
 * chunks, all of them seem finished a little early, and the next frame wants every one.
 * So what was read since it was put on the list is not dropped yet.
 *
 * Who goes forward does not come back.  Behind others a chunk is retired: the cache
 * knows it when it returns, because the kernel did not keep it (readers in a control
 * group with little memory, and the daemon in another one), and then it has proven that it
 * is wanted here, and is not retired again.  Small ones are left alone: of so many the
 * cache would not know enough.
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
	b->least = cache_known(cache);
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
		size_t served, bool forward)
{
	const struct behind_chunk new = {set, index, bytes, served, forward};
	struct behind_chunk old[2];
	unsigned n = 0;

	if (!forward && bytes < b->least)
		return;
	pthread_mutex_lock(&b->lock);
	put(b, &new);
	while (n < 2 && (b->n == BEHIND_CHUNKS || b->bytes > b->most))
		old[n++] = take(b);
	pthread_mutex_unlock(&b->lock);
	while (n--) {
		const struct behind_chunk *c = &old[n];

		if (c->forward ? cache_drop_idle(b->cache, c->set, c->index,
						 &old[n].served)
			       : cache_retire(b->cache, c->set, c->index,
					      &old[n].served))
			continue;
		pthread_mutex_lock(&b->lock);
		/* Else it is forgotten, and the cache's own affair. */
		if (b->n < BEHIND_CHUNKS - 2)
			put(b, c);
		pthread_mutex_unlock(&b->lock);
	}
}
