/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard of the cache: a hash table of entries, and the queues they stand in. */
#include "store/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/*
 * The table has chains and doubles when it has an entry a bucket.  The upper half of the
 * hash chooses the bucket, the lower half has chosen the shard.  A queue goes from the
 * entry put there last to the one put there first.  LOADING entries are in the table
 * only.
 *
 * Ghosts have two places for each bucket and queue (and two for retired entries), each
 * with the lower half of a hash; a new one replaces the older.  When the table doubles,
 * both buckets that come from one get its ghosts, because it is no longer known to which
 * of them they belong.
 */
#define GHOSTS 2

static struct entry **shard_bucket_of(const struct shard *s, uint64_t hash)
{
	return &s->bucket[hash >> 32 & (s->buckets - 1)];
}

bool shard_init(struct shard *s, uint64_t buckets)
{
	*s = (struct shard){.buckets = buckets};
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned q = 0; q < SHARD_QUEUES; q++)
		atomic_init(&s->queue[q].tail_tick, UINT64_MAX);
	s->bucket = calloc(s->buckets, sizeof *s->bucket);
	s->ghost = calloc(s->buckets, GHOSTS * SHARD_GHOSTS * sizeof *s->ghost);
	return s->bucket != NULL;
}

void shard_destroy(struct shard *s)
{
	struct entry *e;

	for (unsigned q = 0; q < SHARD_QUEUES; q++)
		while ((e = s->queue[q].newest)) {
			s->queue[q].newest = e->older;
			buf_unref(e->buf);
			free(e);
		}
	free(s->bucket);
	free(s->ghost);
	pthread_mutex_destroy(&s->lock);
}

struct entry *shard_find(const struct shard *s, uint64_t hash, uint64_t set,
			 uint64_t index)
{
	struct entry *e = *shard_bucket_of(s, hash);

	while (e && (e->index != index || e->set != set))
		e = e->chain;
	return e;
}

/* Make room for the ghosts of twice the buckets.  Without memory all ghosts are
 * forgotten. */
static void ghosts_grow(struct shard *s)
{
	size_t half = s->buckets * GHOSTS * SHARD_GHOSTS;
	struct ghost *more = calloc(half * 2, sizeof *more);

	if (more && s->ghost) {
		memcpy(more, s->ghost, half * sizeof *more);
		memcpy(more + half, s->ghost, half * sizeof *more);
	}
	free(s->ghost);
	s->ghost = more;
}

/* Double the buckets.  Without memory chains just get longer. */
static void shard_grow(struct shard *s)
{
	struct entry **old = s->bucket, *e, *next;
	uint64_t n = s->buckets;
	struct entry **more = calloc(n * 2, sizeof *more);

	if (!more)
		return;
	ghosts_grow(s);
	s->bucket = more;
	s->buckets = n * 2;
	for (uint64_t i = 0; i < n; i++) {
		for (e = old[i]; e; e = next) {
			struct entry **b = shard_bucket_of(
				s, shard_hash(e->set, e->index));

			next = e->chain;
			e->chain = *b;
			*b = e;
		}
	}
	free(old);
}

void shard_insert(struct shard *s, uint64_t hash, struct entry *e)
{
	struct entry **b;

	if (s->used >= s->buckets)
		shard_grow(s);
	b = shard_bucket_of(s, hash);
	e->chain = *b;
	*b = e;
	s->used++;
}

void shard_remove(struct shard *s, struct entry *e)
{
	struct entry **b = shard_bucket_of(s, shard_hash(e->set, e->index));

	while (*b != e)
		b = &(*b)->chain;
	*b = e->chain;
	s->used--;
}

static void show_tail(struct queue *q)
{
	atomic_store_explicit(&q->tail_tick,
			      q->oldest ? q->oldest->tick : UINT64_MAX,
			      memory_order_relaxed);
}

void shard_unlist(struct shard *s, struct entry *e)
{
	struct queue *q = &s->queue[e->queue];

	*(e->newer ? &e->newer->older : &q->newest) = e->older;
	*(e->older ? &e->older->newer : &q->oldest) = e->newer;
	s->ready--;
	if (!e->older)
		show_tail(q);
}

void shard_list(struct shard *s, struct entry *e, uint64_t tick)
{
	struct queue *q = &s->queue[e->queue];

	e->tick = tick;
	e->newer = NULL;
	e->older = q->newest;
	*(q->newest ? &q->newest->newer : &q->oldest) = e;
	q->newest = e;
	s->ready++;
	if (!e->older)
		show_tail(q);
}

static struct ghost *ghosts_of(const struct shard *s, uint64_t hash)
{
	return &s->ghost[(hash >> 32 & (s->buckets - 1)) * GHOSTS *
			 SHARD_GHOSTS];
}

/* The lowest bits of the hash have chosen the shard and tell nothing: the queue is kept
 * there. */
static uint32_t ghost_mark(uint64_t hash, enum shard_queue queue)
{
	return ((uint32_t)hash & ~UINT32_C(3)) | (uint32_t)(queue + 1);
}

void shard_ghost_add(struct shard *s, uint64_t hash, enum shard_queue queue,
		     uint32_t when)
{
	struct ghost *g;

	if (!s->ghost)
		return;
	g = ghosts_of(s, hash) + queue * GHOSTS;
	if (g[0].mark && (!g[1].mark || when - g[0].when < when - g[1].when))
		g++; /* the second one is free, or older */
	*g = (struct ghost){ghost_mark(hash, queue), when};
}

bool shard_ghost_take(struct shard *s, uint64_t hash, enum shard_queue queue,
		      uint32_t when, uint32_t most)
{
	struct ghost *g;

	if (!s->ghost)
		return false;
	g = ghosts_of(s, hash) + queue * GHOSTS;
	for (unsigned i = 0; i < GHOSTS; i++, g++)
		if (g->mark == ghost_mark(hash, queue) &&
		    when - g->when <= most) {
			g->mark = 0;
			return true;
		}
	return false;
}

struct entry *shard_shed(struct shard *s, const _Atomic uint64_t *gauge,
			 uint64_t tick, uint64_t most)
{
	struct entry *e, *newer, *gone = NULL;

	for (unsigned q = 0; q < SHARD_QUEUES; q++)
		for (e = s->queue[q].oldest; e && most > 0; e = newer) {
			newer = e->newer;
			if (e->used >= tick || e->buf->gauge == gauge ||
			    atomic_load(&e->buf->refs) > 1)
				continue;
			shard_unlist(s, e);
			shard_remove(s, e);
			e->chain = gone;
			gone = e;
			most--;
		}
	return gone;
}

/* ---- consistency, for tests ---- */

#define MUST(cond)                                                     \
	do {                                                           \
		if (!(cond)) {                                         \
			log_error("cache: a check failed: %s", #cond); \
			abort();                                       \
		}                                                      \
	} while (0)

/* Check a queue and return its number of entries. */
static uint64_t verify_queue(const struct shard *s, unsigned which)
{
	const struct queue *q = &s->queue[which];
	const struct entry *newer = NULL;
	uint64_t n = 0;

	for (const struct entry *e = q->newest; e; newer = e, e = e->older) {
		MUST(e->queue == which);
		MUST(e->newer == newer);
		MUST(!newer || e->tick <= newer->tick);
		MUST(shard_find(s, shard_hash(e->set, e->index), e->set,
				e->index) == e);
		MUST(e->buf != NULL);
		MUST(++n <= s->ready);
	}
	MUST(q->oldest == newer);
	MUST(atomic_load(&q->tail_tick) ==
	     (q->oldest ? q->oldest->tick : UINT64_MAX));
	return n;
}

uint64_t shard_verify(const struct shard *s, unsigned which, unsigned shards,
		      const _Atomic uint64_t *gauge, uint64_t beside,
		      uint64_t *young)
{
	uint64_t used = 0, ready = 0, bytes = 0;

	MUST(verify_queue(s, SHARD_YOUNG) + verify_queue(s, SHARD_PROVEN) ==
	     s->ready);
	for (uint64_t i = 0; i < s->buckets; i++) {
		for (const struct entry *e = s->bucket[i]; e; e = e->chain) {
			uint64_t hash = shard_hash(e->set, e->index);

			MUST(hash % shards == which);
			MUST(shard_bucket_of(s, hash) == &s->bucket[i]);
			MUST(++used <= s->used);
			MUST(!e->buf != !e->flight);
			if (!e->buf)
				continue;
			MUST(atomic_load(&e->buf->refs) > 0);
			ready++;
			if (e->queue == SHARD_YOUNG)
				*young += beside;
			if (e->buf->gauge != gauge)
				continue;
			bytes += e->buf->capacity;
			if (e->queue == SHARD_YOUNG)
				*young += e->buf->capacity;
		}
	}
	MUST(used == s->used);
	MUST(ready == s->ready);
	return bytes;
}
