/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entries stay in the cache: new ones on trial, proven ones, and what they cost to
 * load. */
/*
 * Two queues, each with ghosts, which remember the entries that went from it lately:
 *
 *	load --> young --used meanwhile--> proven --> gone, a ghost
 *	             |                       ^  |
 *	             '--> gone, a ghost      |  '-- in order of use; an entry that is dear
 *	                        |            |      to load is passed over some times
 *	                        '--loaded again
 *
 * A scan goes through the young part and leaves the rest alone.  How large that part may
 * be is learnt, as in ARC (Megiddo and Modha, 2003): a young entry's ghost that is asked
 * for says that the part was too small, a proven entry's ghost that it was too large.  So
 * it is a sixth where some chunks are needed more often than others, and nearly all where
 * everything is used for a while and then something else.  There the policy is least
 * recently used, which it nearly is at first, too: a row of a scan is over before
 * anything is learnt.  Ghosts are remembered for as many bytes as nine tenths of the
 * budget.
 *
 * A young entry whose bytes were all handed out to readers is retired before its turn
 * (behind.c).  Its ghost is remembered for twice the budget, about as long as the entry
 * and its ghost would have been, and says nothing about the size of the young part.
 *
 * Bursts.  One read of a large chunk is a dozen requests.  So a use counts only if the
 * shard saw BURST others since the last use that counted: a chunk that one reader wanted,
 * and then not again, proves nothing.
 *
 * Ahead.  An entry decoded ahead of a reader was never used.  Its first use is not a
 * second one, and it is passed over TURNS times before it goes.
 *
 * Cost.  Loads are timed.  Each set has its pace (time for a byte, as a running mean;
 * sets that share a slot share it), and so have all sets together.  A proven entry that
 * takes several times as long as others is passed over as many times, less one.  So bzip2
 * stays longer than LZ4, and an index longer than both.
 *
 * Most hits move nothing: they write two numbers into the entry.  Between shards the
 * oldest entry goes first, by the tick at which it was put into its place; each shard
 * shows the ticks of its tails without a lock.  Pinned entries are passed over.  When all
 * are pinned, we over-commit: waiting while holding pins would deadlock.
 *
 * contrib/bench/bench-cache.c has the traces, other policies, and one that knows the
 * future; docs/performance.md has the figures.
 */
#include <stdlib.h>

#include "base/number.h"
#include "store/cache_private.h"

#define YOUNG_LEAST 6 /* a sixth of the budget */
#define YOUNG_FIRST 3 /* quarters of the budget */
/* A hit on a ghost moves the target of the young part by this many times its bytes. */
#define YOUNG_STEP 2
#define BURST 8
#define TURNS 2
#define WEIGHT_MAX 8
/* The most passes that an entry can need before it goes, and one more. */
#define PASSES (WEIGHT_MAX + TURNS + 2)
/* A pace is in picoseconds a byte, and the mean of MEAN loads.  MEAN is the same for one
 * set and for all, so that a single set has exactly the pace of all. */
#define MEAN 64
/* The time of ghosts is counted in bytes that went, in units of GHOST_UNIT bytes. */
#define GHOST_UNIT 4096

/* ---- what loads cost ------------------------------------------------------ */

/* Add a value to a running mean and return the mean.  Of two threads that do so at once,
 * one value may be lost. */
static uint32_t mean_add(_Atomic uint32_t *mean, uint32_t value)
{
	int64_t old = atomic_load_explicit(mean, memory_order_relaxed);
	int64_t sum = old ? old + ((int64_t)value - old) / MEAN : value;
	uint32_t mean_now = sum > 0 ? (uint32_t)sum : 1;

	atomic_store_explicit(mean, mean_now, memory_order_relaxed);
	return mean_now;
}

uint8_t policy_weigh(struct cache *c, uint64_t set, uint64_t ns, uint64_t bytes)
{
	uint64_t slot = shard_hash(set, 0) % PACES, weight;
	uint32_t pace, mine, all;

	/* At most a minute and at least a page are counted. */
	ns = min_u64(ns, UINT64_C(60000000000));
	bytes = max_u64(bytes, 4096);
	pace = (uint32_t)min_u64(ns * 1000 / bytes, UINT32_MAX / 2);
	mine = mean_add(&c->paces[slot], pace);
	all = mean_add(&c->pace, pace);
	weight = ((uint64_t)mine + all / 2) / all;
	return (uint8_t)min_u64(max_u64(weight, 1), WEIGHT_MAX);
}

/* ---- joining, using, leaving ---------------------------------------------- */

static uint64_t entry_bytes(const struct cache *c, const struct entry *e)
{
	return ENTRY_COST + (e->buf->gauge == &c->alive ? e->buf->capacity : 0);
}

/* The shard's time: the number of uses of its entries. */
static uint32_t shard_uses(const struct shard *s)
{
	return (uint32_t)(s->hits + s->misses);
}

static uint32_t ghost_time(struct cache *c, enum shard_queue queue)
{
	uint64_t gone =
		atomic_load_explicit(&c->gone[queue], memory_order_relaxed);

	/* A retired entry would have stayed until all others had gone. */
	for (unsigned q = 0; queue == SHARD_RETIRED && q < SHARD_QUEUES; q++)
		gone += atomic_load_explicit(&c->gone[q], memory_order_relaxed);
	return (uint32_t)(gone / GHOST_UNIT);
}

void policy_init(struct cache *c)
{
	atomic_init(&c->target, c->budget / 4 * YOUNG_FIRST);
}

/* Make the young part larger, or smaller if the ghost is of a proven entry, for a ghost
 * of `bytes` bytes that is asked for.  (Of two threads that do so at once, one change may
 * be lost.) */
static void adapt_young_target(struct cache *c, enum shard_queue queue,
			       uint64_t bytes)
{
	uint64_t least = c->budget / YOUNG_LEAST;
	uint64_t most = c->budget - c->budget / 10;
	uint64_t t = atomic_load_explicit(&c->target, memory_order_relaxed);

	if (queue == SHARD_YOUNG)
		t = min_u64(t + YOUNG_STEP * bytes, most);
	else
		t = max_u64(t > YOUNG_STEP * bytes ? t - YOUNG_STEP * bytes : 0,
			    least);
	atomic_store_explicit(&c->target, t, memory_order_relaxed);
}

/* Return true if such an entry went from `queue` until lately; its ghost is then
 * forgotten. */
static bool recall_ghost(struct cache *c, struct shard *s, uint64_t hash,
			 enum shard_queue queue, uint64_t bytes)
{
	uint64_t most = c->budget / GHOST_UNIT;

	most = queue == SHARD_RETIRED ? 2 * most : most - most / 10;
	most = min_u64(most, UINT32_MAX / 2);
	if (!shard_ghost_take(s, hash, queue, ghost_time(c, queue),
			      (uint32_t)most))
		return false;
	if (queue != SHARD_RETIRED)
		adapt_young_target(c, queue, bytes);
	return true;
}

static void join_queue(struct cache *c, struct shard *s, struct entry *e,
		       enum shard_queue queue)
{
	e->queue = (uint8_t)queue;
	if (queue == SHARD_YOUNG)
		atomic_fetch_add(&c->young, entry_bytes(c, e));
	else
		e->lives = (uint8_t)(e->weight - 1);
	shard_list(s, e, cache_now(c));
}

void policy_left(struct cache *c, const struct entry *e)
{
	if (e->queue == SHARD_YOUNG)
		atomic_fetch_sub(&c->young, entry_bytes(c, e));
}

void policy_leave(struct cache *c, struct shard *s, struct entry *e)
{
	shard_unlist(s, e);
	policy_left(c, e);
}

void policy_enter(struct cache *c, struct shard *s, uint64_t hash,
		  struct entry *e)
{
	uint64_t bytes = entry_bytes(c, e);
	bool again = recall_ghost(c, s, hash, SHARD_YOUNG, bytes) ||
		     recall_ghost(c, s, hash, SHARD_PROVEN, bytes) ||
		     recall_ghost(c, s, hash, SHARD_RETIRED, bytes);

	e->used = cache_now(c);
	e->noted = shard_uses(s);
	join_queue(c, s, e, again ? SHARD_PROVEN : SHARD_YOUNG);
}

void policy_use(struct cache *c, struct shard *s, struct entry *e)
{
	bool counts = !e->ahead && shard_uses(s) - e->noted >= BURST;

	e->used = cache_now(c);
	if (!e->ahead && !counts)
		return;
	e->ahead = false;
	e->noted = shard_uses(s);
	if (!counts)
		return;
	if (e->queue == SHARD_YOUNG) {
		e->lives = 1; /* its next turn makes it proven */
	} else {
		policy_leave(c, s, e);
		join_queue(c, s, e, SHARD_PROVEN);
	}
}

/* ---- eviction ------------------------------------------------------------- */

enum outcome { WENT, STAYED, PINNED };

/* Return the shard whose tail in that queue is the oldest, and its tick, or NULL if all
 * queues are empty. */
static struct shard *oldest_shard(struct cache *c, enum shard_queue queue,
				  uint64_t *tick)
{
	struct shard *best = NULL;

	*tick = UINT64_MAX;
	for (unsigned i = 0; i < SHARDS; i++) {
		uint64_t t = atomic_load_explicit(
			&c->shard[i].queue[queue].tail_tick,
			memory_order_relaxed);

		if (t < *tick) {
			*tick = t;
			best = &c->shard[i];
		}
	}
	return best;
}

static void become_ghost(struct cache *c, struct shard *s,
			 const struct entry *e, enum shard_queue from)
{
	atomic_fetch_add(&c->gone[from], entry_bytes(c, e));
	shard_ghost_add(s, shard_hash(e->set, e->index), from,
			ghost_time(c, from));
}

bool policy_retire(struct cache *c, struct shard *s, struct entry *e)
{
	if (e->queue != SHARD_YOUNG || e->buf->gauge != &c->alive)
		return false;
	if (atomic_load(&e->buf->served) / 2 >= e->buf->useful) {
		policy_leave(c, s, e); /* it was read twice already */
		join_queue(c, s, e, SHARD_PROVEN);
		return false;
	}
	become_ghost(c, s, e, SHARD_RETIRED);
	return true;
}

/* Evict the tail of a queue, or move it to a newer place.  The caller holds the lock. */
static enum outcome evict_or_pass_over(struct cache *c, struct shard *s,
				       struct entry *e)
{
	enum shard_queue queue = e->queue;
	bool pinned = atomic_load(&e->buf->refs) > 1;
	bool ahead = queue == SHARD_YOUNG && e->ahead && e->turns < TURNS;
	uint8_t lives = e->lives;

	policy_leave(c, s, e);
	if (pinned || ahead) {
		e->turns += !pinned;
		join_queue(c, s, e, queue);
		e->lives = lives;
		return pinned ? PINNED : STAYED;
	}
	if (lives) {
		join_queue(c, s, e, SHARD_PROVEN);
		if (queue == SHARD_PROVEN)
			e->lives = (uint8_t)(lives - 1);
		return STAYED;
	}
	become_ghost(c, s, e, queue);
	shard_remove(s, e);
	s->evictions++;
	return WENT;
}

static enum outcome evict_tail(struct cache *c, struct shard *s,
			       enum shard_queue queue)
{
	enum outcome what = STAYED; /* another thread was faster */
	struct entry *e;

	pthread_mutex_lock(&s->lock);
	e = s->queue[queue].oldest;
	if (e)
		what = evict_or_pass_over(c, s, e);
	pthread_mutex_unlock(&s->lock);
	if (what == WENT)
		cache_entry_gone(c, e);
	return what;
}

/* The bytes by which the cache is over its budget. */
static uint64_t over_budget(struct cache *c)
{
	uint64_t all = atomic_load(&c->alive) + atomic_load(&c->reserved) +
		       atomic_load(&buf_extra_bytes);

	return all - min_u64(all, c->budget);
}

/* Bytes outside of buffers (buf_extra_bytes) that are not asked for yet go before entries that
 * were. */
static void shrink_bytes_beside(struct cache *c)
{
	buf_extra_shrink_fn *less = atomic_load(&buf_extra_shrink);
	uint64_t over = less ? over_budget(c) : 0;

	if (over)
		less(over);
}

/* Choose the shard and queue to evict from: young entries while they take more than they
 * may, but not one that was put into its place since `start`, because it is pinned or
 * just came. */
static struct shard *next_shard(struct cache *c, uint64_t start,
				enum shard_queue *queue)
{
	uint64_t young, proven;
	struct shard *y = oldest_shard(c, SHARD_YOUNG, &young);
	struct shard *p = oldest_shard(c, SHARD_PROVEN, &proven);
	bool many = atomic_load(&c->young) > atomic_load(&c->target);

	*queue = y && (!p || (many && young < start)) ? SHARD_YOUNG
						      : SHARD_PROVEN;
	return *queue == SHARD_YOUNG ? y : p;
}

void policy_evict(struct cache *c)
{
	uint64_t ready = atomic_load(&c->ready) + SHARDS, pinned = 0;
	uint64_t start = cache_now(c), tries = ready * PASSES;

	shrink_bytes_beside(c);
	while (tries-- > 0 && pinned <= ready && over_budget(c)) {
		enum shard_queue queue;
		struct shard *s = next_shard(c, start, &queue);

		if (!s)
			return;
		pinned = evict_tail(c, s, queue) == PINNED ? pinned + 1 : 0;
	}
}
