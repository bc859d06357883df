/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks whose bytes were all handed out: kept for a while, then dropped. */
/*
 * The kernel's page cache has the bytes that readers were given.  A second copy here is
 * useless, and takes memory from that page cache.
 *
 * Whether all of a chunk was handed out is counted in bytes, and some bytes are handed
 * out twice, when the kernel lost them or another file has them, too.  Where a row of
 * frames touches many chunks, all of them may seem finished a little early, and the next
 * frame needs every one.  So a chunk that was read since it was put on the list is not
 * dropped yet.
 *
 * A reader that goes forward does not come back, so few of its chunks are kept: the next
 * ones are then decoded into the same memory, which is still in the processor's cache.
 * With many kept, each chunk is decoded into pages that were never touched, and getting
 * those from the kernel takes as long as decoding (docs/performance.md).
 *
 * Chunks are dropped with cache_retire, which leaves a ghost: the cache recognises the
 * chunk if it is loaded again because the kernel did not keep it (for readers in a
 * control group with little memory, and the daemon in another one).  Such a chunk has
 * proven that it is needed here, and is not retired again.  Small chunks behind readers
 * that do not go forward are left alone: there are too many of them for the ghosts that
 * the cache can keep.
 */
#include "store/behind.h"

#include "base/number.h"

/* The most bytes that are kept behind readers that go forward, and behind others. */
#define FORWARD_MAX (UINT64_C(16) << 20)
#define OTHERS_MAX (UINT64_C(256) << 20)
/* Each of the two is at most 1/SHARE of the cache. */
#define SHARE 8

void behind_init(struct behind *b, struct cache *cache, uint64_t budget)
{
	*b = (struct behind){.cache = cache, .least = cache_ghosts_from(cache)};
	pthread_mutex_init(&b->lock, NULL);
	b->forward.most = min_u64(FORWARD_MAX, budget / SHARE);
	b->others.most = min_u64(OTHERS_MAX, budget / SHARE);
}

void behind_destroy(struct behind *b)
{
	pthread_mutex_destroy(&b->lock);
}

/* Append a chunk to the list.  The caller holds the lock. */
static void behind_list_append(struct behind_list *l,
			       const struct behind_chunk *c)
{
	l->ring[(l->first + l->n++) % BEHIND_CHUNKS] = *c;
	l->bytes += c->bytes;
}

static struct behind_chunk behind_list_take_oldest(struct behind_list *l)
{
	struct behind_chunk c = l->ring[l->first];

	l->bytes -= c.bytes;
	l->first = (l->first + 1) % BEHIND_CHUNKS;
	l->n--;
	return c;
}

/* Drop a chunk from the cache.  Return false if it is in use, or more of it was handed
 * out meanwhile; c->served then says how much. */
static bool drop_chunk_behind(struct behind *b, struct behind_chunk *c)
{
	return b->elsewhere
		       ? cache_drop_idle(b->cache, c->set, c->index, &c->served)
		       : cache_retire(b->cache, c->set, c->index, &c->served);
}

void behind_add(struct behind *b, uint64_t set, uint64_t index, uint64_t bytes,
		size_t served, bool forward)
{
	const struct behind_chunk new = {set, index, bytes, served};
	struct behind_list *l = forward ? &b->forward : &b->others;
	struct behind_chunk old[2];
	unsigned n = 0;

	if (!forward && bytes < b->least)
		return;
	pthread_mutex_lock(&b->lock);
	behind_list_append(l, &new);
	while (n < 2 && (l->n == BEHIND_CHUNKS || l->bytes > l->most))
		old[n++] = behind_list_take_oldest(l);
	pthread_mutex_unlock(&b->lock);
	while (n--) {
		if (drop_chunk_behind(b, &old[n]))
			continue;
		pthread_mutex_lock(&b->lock);
		/* If there is no place, eviction is left to the cache's own policy. */
		if (l->n < BEHIND_CHUNKS - 2)
			behind_list_append(l, &old[n]);
		pthread_mutex_unlock(&b->lock);
	}
}
