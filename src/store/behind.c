/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of which all was handed out: kept for a while, then dropped. */
/*
 * The kernel's page cache has what was handed out.  To have it here as well is of use to
 * nobody, and takes memory from that page cache.
 *
 * That all of a chunk was handed out is counted in bytes, and some are handed out twice:
 * what is pushed while it is asked for, or read again.  Where a row of frames touches many
 * chunks, all of them seem finished a little early, and the next frame wants every one.
 * So what was read since it was put on the list is not dropped yet.
 *
 * Does the kernel keep it?  Not where readers have a control group with little memory,
 * and the daemon is in another one.  Who goes forward does not come back to it, so it is
 * dropped behind him whatever the kernel does.  Of what is dropped behind others, some is
 * watched: when more than a quarter comes back so soon that the cache would still have
 * had it, only one of 16 is dropped, which tells when that has changed.
 */
#include "store/behind.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

#define BEHIND (UINT64_C(256) << 20)
#define BEHIND_SHARE 8
#define ROUND 64
#define WARY_SHARE 4
#define WARY_TURN 16

void behind_init(struct behind *b, struct cache *cache, uint64_t budget)
{
	memset(b, 0, sizeof *b);
	pthread_mutex_init(&b->lock, NULL);
	b->cache = cache;
	b->budget = budget;
	b->most = min_u64(BEHIND, budget / BEHIND_SHARE);
}

void behind_destroy(struct behind *b)
{
	pthread_mutex_destroy(&b->lock);
}

/* ---- does it come back? -------------------------------------------------- */

static uint64_t key_of(uint64_t set, uint64_t index)
{
	uint64_t h = (set << 40 ^ index) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	h ^= h >> 29;
	return h ? h : 1;
}

/* By upper bits: the lower ones say which are watched. */
static struct behind_watched *place_of(struct behind *b, uint64_t key)
{
	return &b->watched[(key >> 40) % BEHIND_WATCHED];
}

static bool is_watched(const struct behind *b, uint64_t key)
{
	return !(key & atomic_load_explicit(&b->other, memory_order_relaxed));
}

static void forget(struct behind *b, struct behind_watched *w)
{
	w->key = 0;
	atomic_fetch_sub(&b->n_watched, 1);
}

/* With the lock: half as many from now on. */
static void watch_fewer(struct behind *b)
{
	atomic_store(&b->other, atomic_load(&b->other) << 1 | 1);
	for (unsigned i = 0; i < BEHIND_WATCHED; i++)
		if (b->watched[i].key && !is_watched(b, b->watched[i].key))
			forget(b, &b->watched[i]);
}

/* With the lock: it was dropped. */
static void watch(struct behind *b, const struct behind_chunk *c)
{
	uint64_t key = key_of(c->set, c->index);
	struct behind_watched *w = place_of(b, key);

	if (c->forward || !is_watched(b, key))
		return;
	if (!w->key && atomic_load(&b->n_watched) == BEHIND_WATCHED / 2)
		watch_fewer(b);
	if (!w->key)
		atomic_fetch_add(&b->n_watched, 1);
	w->key = key;
	w->at = atomic_load(&b->decoded);
	if (++b->dropped < ROUND)
		return;
	atomic_store(&b->wary, b->back > ROUND / WARY_SHARE);
	b->dropped = b->back = 0;
}

void behind_decoded(struct behind *b, uint64_t set, uint64_t index,
		    uint64_t bytes)
{
	uint64_t key = key_of(set, index);
	uint64_t now = atomic_fetch_add(&b->decoded, bytes) + bytes;
	struct behind_watched *w = place_of(b, key);

	if (!atomic_load(&b->n_watched) || !is_watched(b, key))
		return;
	lock_scope(&b->lock);
	if (w->key != key)
		return;
	b->back += now - w->at <= b->budget;
	forget(b, w);
}

/* ---- the list ------------------------------------------------------------ */

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

	if (!forward && atomic_load(&b->wary) &&
	    atomic_fetch_add(&b->turn, 1) % WARY_TURN)
		return;
	pthread_mutex_lock(&b->lock);
	put(b, &new);
	while (n < 2 && (b->n == BEHIND_CHUNKS || b->bytes > b->most))
		old[n++] = take(b);
	pthread_mutex_unlock(&b->lock);
	while (n--) {
		bool gone = cache_drop_idle(b->cache, old[n].set, old[n].index,
					    &old[n].served);

		lock_scope(&b->lock);
		if (gone)
			watch(b, &old[n]);
		else if (b->n < BEHIND_CHUNKS - 2)
			put(b, &old[n]);
		/* Else it is forgotten, and the cache's own affair. */
	}
}
