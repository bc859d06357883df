/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks within a byte budget; one load per key, pinned by reference. */
#include "store/cache.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "store/cache_private.h"

/*
 * Keys are spread over SHARDS shards.  Each has a hash table, queues of its ready
 * entries, and one lock.  An entry is in one of two states:
 *
 *	miss -> LOADING ----load fails, or larger than the budget----> gone
 *	           |                                                    ^
 *	           +---------load succeeds---> READY ---eviction--------+
 *
 * A LOADING entry has a `flight`: where the loading thread and the waiting threads meet.
 * The load runs without any lock.  The outcome is written into the flight, and waiters
 * take it from there, never from the entry, which may be gone before they wake; the last
 * of them frees the flight.
 *
 * Pins.  The cache holds one reference to the buffer of a READY entry, readers hold one
 * each.  Readers take theirs under the shard's lock, so an entry whose count is 1 under
 * that lock is unused and stays so.
 *
 * Bytes.  The budget covers all that is alive, including buffers that readers still hold
 * after eviction, and the tables themselves.  That is `alive`, the gauge of all published
 * buffers.  Running loads have `reserved` the bytes that they said they need.  The buffer
 * of a load in progress counts in a gauge of the load's own and moves to `alive` when it
 * is published, in exchange for the reservation; counting it in both would evict one good
 * chunk too many for every load at work.
 *
 * The order of eviction is up to policy.c.  The clock that orders entries advances once a
 * load, not once a use, so hits only read it.
 *
 * A load may itself ask the cache (a text made from other chunks), as long as keys do not
 * depend on themselves.  Such a nested load passes the gate at once.  While it waits for
 * another thread's flight it lends its share of the gate, because that other thread may
 * be standing in the queue.
 *
 * Locks are leaves: none is held across a load or while a buffer is freed.
 */
#define GATE_MIN (UINT64_C(32) << 20)
#define GATE_SHARE 4
/* Buckets of a shard at first: one for each BUCKET_BYTES of the budget, within bounds. */
#define BUCKETS_MIN 64
#define BUCKETS_MOST 16384
#define BUCKET_BYTES (UINT64_C(4) << 20)
/* No machine has 256 TiB of memory; sums of such costs cannot overflow. */
#define COST_MAX (UINT64_C(1) << 48)

struct flight {
	pthread_cond_t landed;
	unsigned users; /* the loading thread and the waiting ones */
	bool done;
	struct error err;
	struct buf *buf; /* the result, with a reference of the flight's own */
};

/* The load that this thread runs, by which loads inside it know that they are nested. */
struct running {
	struct gate *gate;
	uint64_t cost;
	struct running *outer;
};
static _Thread_local struct running *running;

static struct shard *cache_shard_of(struct cache *c, uint64_t hash)
{
	return &c->shard[hash % SHARDS];
}

/* Note a use of a READY entry; return its buffer with a reference for the caller. */
static struct buf *entry_use(struct cache *c, struct shard *s, struct entry *e)
{
	s->hits++;
	policy_use(c, s, e);
	return buf_ref(e->buf);
}

void cache_entry_gone(struct cache *c, struct entry *e)
{
	buf_unref(e->buf);
	free(e);
	atomic_fetch_sub(&c->alive, ENTRY_COST);
	atomic_fetch_sub(&c->ready, 1);
}

/* ---- loading ---- */

static void flight_free(struct flight *f)
{
	buf_unref(f->buf);
	pthread_cond_destroy(&f->landed);
	free(f);
}

/* Add a LOADING entry with its flight to the table.  Return NULL if memory is out. */
static struct entry *entry_new(struct shard *s, uint64_t hash, uint64_t set,
			       uint64_t index)
{
	struct entry *e = calloc(1, sizeof *e);
	struct flight *f = calloc(1, sizeof *f);

	if (!e || !f) {
		free(e);
		free(f);
		return NULL;
	}
	pthread_cond_init(&f->landed, NULL);
	f->users = 1;
	e->set = set;
	e->index = index;
	e->flight = f;
	shard_insert(s, hash, e);
	return e;
}

/* Lend this thread's share of the gate, for all loads that it is in, or take it back. */
static void lend_share(void)
{
	for (struct running *r = running; r; r = r->outer)
		gate_leave(r->gate, r->cost);
}
static void reclaim_share(void)
{
	for (struct running *r = running; r; r = r->outer)
		gate_force(r->gate, r->cost);
}

/* Wait for another thread's load and share its outcome.  Called with the shard's lock,
 * returns without it. */
static int flight_wait(struct shard *s, struct flight *f, struct buf **out,
		       struct error *err)
{
	bool last;
	int r;

	f->users++;
	if (running) {
		pthread_mutex_unlock(&s->lock);
		lend_share();
		pthread_mutex_lock(&s->lock);
	}
	while (!f->done)
		pthread_cond_wait(&f->landed, &s->lock);
	r = f->err.code;
	if (!r) {
		s->hits++;
		*out = buf_ref(f->buf);
	} else if (err) {
		*err = f->err;
	}
	last = --f->users == 0;
	pthread_mutex_unlock(&s->lock);
	if (running)
		reclaim_share();
	if (last)
		flight_free(f);
	return r;
}

/* Call `load` with room made for it.  The buffer then counts in c->alive, and so does the
 * entry if *keep.  The outcome is in f->err. */
static struct buf *run_load(struct cache *c, struct entry *e, uint64_t cost,
			    cache_load_fn *load, void *ctx, bool *keep)
{
	struct flight *f = e->flight;
	struct running me = {&c->gate, cost, running};
	_Atomic uint64_t making = 0;
	struct buf *b = NULL;
	uint64_t start;
	int r;

	if (running)
		gate_force(&c->gate, cost);
	else
		gate_enter(&c->gate, cost);
	atomic_fetch_add_explicit(&c->clock, 1, memory_order_relaxed);
	atomic_fetch_add(&c->reserved, cost);
	policy_evict(c);
	running = &me;
	start = clock_ns();
	r = load(ctx, &making, &b, &f->err);
	running = me.outer;
	if (r < 0)
		b = NULL;
	else if (!b)
		r = error_set(
			&f->err, -EIO,
			"loading a chunk gave no bytes: a defect of tensorfs");
	else
		r = 0;
	f->err.code = r;
	*keep = b &&
		(b->gauge != &making || b->capacity + ENTRY_COST <= c->budget);
	if (b && b->gauge == &making) {
		atomic_fetch_sub(&making, b->capacity);
		atomic_fetch_add(&c->alive, b->capacity);
		b->gauge = &c->alive;
	}
	/* Bytes still counted here would be subtracted from this stack frame when they
	 * are freed. */
	assert(atomic_load(&making) == 0);
	if (*keep) {
		e->weight =
			policy_weigh(c, e->set, clock_ns() - start, b->size);
		atomic_fetch_add(&c->alive, ENTRY_COST);
		atomic_fetch_add(&c->ready, 1);
	}
	atomic_fetch_sub(&c->reserved, cost);
	return b;
}

/* Load a LOADING entry of this thread and wake the threads that wait for it. */
static int entry_load(struct cache *c, struct shard *s, uint64_t hash,
		      struct entry *e, uint64_t cost, cache_load_fn *load,
		      void *ctx, struct buf **out, struct error *err)
{
	struct flight *f = e->flight;
	bool keep, last;
	struct buf *b = run_load(c, e, cost, load, ctx, &keep);
	int r = f->err.code;

	if (r && err)
		*err = f->err;
	pthread_mutex_lock(&s->lock);
	s->misses++;
	e->flight = NULL;
	if (keep) {
		e->buf = buf_ref(b);
		policy_enter(c, s, hash, e);
	} else {
		shard_remove(s, e);
	}
	f->done = true;
	last = --f->users == 0;
	if (!last) {
		f->buf = b ? buf_ref(b) : NULL;
		pthread_cond_broadcast(&f->landed);
	}
	pthread_mutex_unlock(&s->lock);
	gate_leave(&c->gate, cost);
	if (!keep)
		free(e);
	if (last)
		flight_free(f);
	policy_evict(c); /* the result may be larger than expected */
	*out = b;
	return r;
}

int cache_get(struct cache *c, uint64_t set, uint64_t index, uint64_t expect,
	      uint64_t scratch, cache_load_fn *load, void *ctx,
	      struct buf **out, struct error *err)
{
	uint64_t hash = shard_hash(set, index), cost;
	struct shard *s = cache_shard_of(c, hash);
	struct entry *e;

	*out = NULL;
	pthread_mutex_lock(&s->lock);
	e = shard_find(s, hash, set, index);
	if (e && e->flight)
		return flight_wait(s, e->flight, out, err);
	if (e) {
		*out = entry_use(c, s, e);
		pthread_mutex_unlock(&s->lock);
		return 0;
	}
	e = entry_new(s, hash, set, index);
	pthread_mutex_unlock(&s->lock);
	if (!e)
		return error_no_memory(err, "an entry of the cache");
	cost = min_u64(expect, COST_MAX / 2) + min_u64(scratch, COST_MAX / 2) +
	       ENTRY_COST;
	log_debug(DEBUG_CACHE,
		  "load %" PRIu64 "/%" PRIu64 ", %" PRIu64 " bytes", set, index,
		  cost);
	return entry_load(c, s, hash, e, cost, load, ctx, out, err);
}

struct buf *cache_peek(struct cache *c, uint64_t set, uint64_t index)
{
	uint64_t hash = shard_hash(set, index);
	struct shard *s = cache_shard_of(c, hash);
	struct buf *b = NULL;
	struct entry *e;

	pthread_mutex_lock(&s->lock);
	e = shard_find(s, hash, set, index);
	if (e && e->buf)
		b = entry_use(c, s, e);
	pthread_mutex_unlock(&s->lock);
	return b;
}

bool cache_has(struct cache *c, uint64_t set, uint64_t index)
{
	uint64_t hash = shard_hash(set, index);
	struct shard *s = cache_shard_of(c, hash);

	lock_scope(&s->lock);
	return shard_find(s, hash, set, index) != NULL;
}

enum leaving { DROPPED, IDLE, RETIRED };

static bool cache_remove_entry(struct cache *c, uint64_t set, uint64_t index,
			       size_t *served, enum leaving how)
{
	uint64_t hash = shard_hash(set, index);
	struct shard *s = cache_shard_of(c, hash);
	bool held = false, may;
	struct entry *e;
	size_t now = 0;

	pthread_mutex_lock(&s->lock);
	e = shard_find(s, hash, set, index);
	if (e && e->buf) {
		now = atomic_load(&e->buf->served);
		held = how == RETIRED && now == *served &&
		       atomic_load(&e->buf->refs) > 1;
	}
	may = e && e->buf && !held && (how == DROPPED || now == *served);
	if (may && how == RETIRED)
		may = policy_retire(c, s, e);
	if (may) {
		policy_leave(c, s, e);
		shard_remove(s, e);
	}
	pthread_mutex_unlock(&s->lock);
	if (may)
		cache_entry_gone(c, e);
	if (now <= *served)
		return !held;
	*served = now;
	return false;
}

bool cache_drop_idle(struct cache *c, uint64_t set, uint64_t index,
		     size_t *served)
{
	return cache_remove_entry(c, set, index, served, IDLE);
}

bool cache_retire(struct cache *c, uint64_t set, uint64_t index, size_t *served)
{
	return cache_remove_entry(c, set, index, served, RETIRED);
}

void cache_drop(struct cache *c, uint64_t set, uint64_t index)
{
	size_t whatever = SIZE_MAX;

	cache_remove_entry(c, set, index, &whatever, DROPPED);
}

void cache_expect(struct cache *c, uint64_t set, uint64_t index)
{
	uint64_t hash = shard_hash(set, index);
	struct shard *s = cache_shard_of(c, hash);
	struct entry *e;

	lock_scope(&s->lock);
	e = shard_find(s, hash, set, index);
	if (e && e->buf)
		e->ahead = true;
}

uint64_t cache_mark(struct cache *c)
{
	return atomic_fetch_add(&c->clock, 1) + 1;
}

void cache_drop_unused(struct cache *c, uint64_t mark, uint64_t most)
{
	struct entry *e, *next;

	most = most / SHARDS + 1;
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];

		pthread_mutex_lock(&s->lock);
		e = shard_shed(s, &c->alive, mark, most);
		for (next = e; next; next = next->chain)
			policy_left(c, next);
		pthread_mutex_unlock(&s->lock);
		for (; e; e = next) {
			next = e->chain;
			cache_entry_gone(c, e);
		}
	}
}

void cache_usage(struct cache *c, struct cache_usage *out)
{
	*out = (struct cache_usage){.budget = c->budget};
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];

		lock_scope(&s->lock);
		out->entries += s->ready;
		out->evictions += s->evictions;
		out->hits += s->hits;
		out->misses += s->misses;
	}
	out->bytes = atomic_load(&c->alive) + atomic_load(&c->reserved);
}

bool cache_is_full(const struct cache *c, uint64_t size)
{
	uint64_t bytes =
		atomic_load_explicit(&c->alive, memory_order_relaxed) +
		atomic_load_explicit(&c->reserved, memory_order_relaxed);

	return bytes > c->budget || size > c->budget - bytes;
}

int cache_new(struct cache **out, uint64_t budget, struct error *err)
{
	struct cache *c = aligned_alloc(_Alignof(struct cache), sizeof *c);
	uint64_t buckets = BUCKETS_MIN;
	bool ok = true;

	*out = NULL;
	if (!c)
		return error_no_memory(err, "the cache of decoded chunks");
	memset(c, 0, sizeof *c);
	c->budget = min_u64(budget, COST_MAX);
	policy_init(c);
	gate_init(&c->gate, max_u64(GATE_MIN, c->budget / GATE_SHARE));
	while (buckets < BUCKETS_MOST && buckets * BUCKET_BYTES < c->budget)
		buckets *= 2;
	c->known = c->budget / (SHARDS / 2 * buckets);
	for (unsigned i = 0; i < SHARDS; i++)
		ok &= shard_init(&c->shard[i], buckets);
	if (!ok) {
		cache_free(c);
		return error_no_memory(err, "the cache of decoded chunks");
	}
	*out = c;
	return 0;
}

uint64_t cache_ghosts_from(const struct cache *c)
{
	return c->known;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < SHARDS; i++)
		shard_destroy(&c->shard[i]);
	gate_destroy(&c->gate);
	free(c);
}

void cache_verify(struct cache *c)
{
	uint64_t bytes = 0, ready = 0, loading = 0, young = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		pthread_mutex_lock(&c->shard[i].lock);
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct shard *s = &c->shard[i];

		bytes += shard_verify(s, i, SHARDS, &c->alive, ENTRY_COST,
				      &young);
		bytes += s->ready * ENTRY_COST;
		ready += s->ready;
		loading += s->used - s->ready;
	}
	/* A reservation is made after its entry and ends before it.  Bytes that readers
	 * hold after eviction are alive without an entry. */
	if ((!loading && atomic_load(&c->reserved)) ||
	    atomic_load(&c->alive) < bytes || atomic_load(&c->ready) < ready ||
	    atomic_load(&c->young) != young) {
		log_error("cache: the sums of bytes or entries are wrong");
		abort();
	}
	for (unsigned i = 0; i < SHARDS; i++)
		pthread_mutex_unlock(&c->shard[i].lock);
}
