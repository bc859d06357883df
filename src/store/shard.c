/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard of the cache: a hash table of entries and their order of use. */
#include "store/shard.h"

#include <stdlib.h>

#include "base/log.h"

/*
 * Chains in a table that doubles when it holds an entry a bucket; the upper
 * half of the hash chooses the bucket, the lower one has chosen the shard.  The
 * list goes from the entry used last to the one used longest ago.  LOADING
 * entries are in the table only.
 */
#define BUCKETS_MIN 64

static struct entry **bucket_of(const struct shard *s, uint64_t hash)
{
	return &s->bucket[hash >> 32 & (s->buckets - 1)];
}

bool shard_init(struct shard *s)
{
	*s = (struct shard){.buckets = BUCKETS_MIN};
	pthread_mutex_init(&s->lock, NULL);
	atomic_init(&s->tail_tick, UINT64_MAX);
	s->bucket = calloc(s->buckets, sizeof *s->bucket);
	return s->bucket != NULL;
}

void shard_destroy(struct shard *s)
{
	struct entry *e;

	while ((e = s->newest)) {
		s->newest = e->older;
		buf_unref(e->buf);
		free(e);
	}
	free(s->bucket);
	pthread_mutex_destroy(&s->lock);
}

struct entry *shard_find(const struct shard *s, uint64_t hash, uint64_t set,
			 uint64_t index)
{
	struct entry *e = *bucket_of(s, hash);

	while (e && (e->index != index || e->set != set))
		e = e->chain;
	return e;
}

/* Twice the buckets; without memory chains just get longer. */
static void shard_grow(struct shard *s)
{
	struct entry **old = s->bucket, *e, *next;
	uint64_t n = s->buckets;
	struct entry **more = calloc(n * 2, sizeof *more);

	if (!more)
		return;
	s->bucket = more;
	s->buckets = n * 2;
	for (uint64_t i = 0; i < n; i++) {
		for (e = old[i]; e; e = next) {
			struct entry **b =
				bucket_of(s, shard_hash(e->set, e->index));

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
	b = bucket_of(s, hash);
	e->chain = *b;
	*b = e;
	s->used++;
}

void shard_remove(struct shard *s, struct entry *e)
{
	struct entry **b = bucket_of(s, shard_hash(e->set, e->index));

	while (*b != e)
		b = &(*b)->chain;
	*b = e->chain;
	s->used--;
}

static void show_tail(struct shard *s)
{
	atomic_store_explicit(&s->tail_tick,
			      s->oldest ? s->oldest->tick : UINT64_MAX,
			      memory_order_relaxed);
}

void shard_unlist(struct shard *s, struct entry *e)
{
	*(e->newer ? &e->newer->older : &s->newest) = e->older;
	*(e->older ? &e->older->newer : &s->oldest) = e->newer;
	s->ready--;
	if (!e->older)
		show_tail(s);
}

void shard_list(struct shard *s, struct entry *e, uint64_t tick)
{
	e->tick = tick;
	e->newer = NULL;
	e->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = e;
	s->newest = e;
	s->ready++;
	if (!e->older)
		show_tail(s);
}

void shard_touch(struct shard *s, struct entry *e, uint64_t tick)
{
	if (s->newest != e) {
		shard_unlist(s, e);
		shard_list(s, e, tick);
		return;
	}
	e->tick = tick;
	if (!e->older)
		show_tail(s);
}

struct entry *shard_shed(struct shard *s, const _Atomic uint64_t *gauge,
			 uint64_t tick, uint64_t most)
{
	struct entry *e, *newer, *gone = NULL;

	for (e = s->oldest; e && e->tick < tick && most > 0; e = newer) {
		newer = e->newer;
		if (e->buf->gauge == gauge || atomic_load(&e->buf->refs) > 1)
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

#define MUST(cond)                                               \
	do {                                                     \
		if (!(cond)) {                                   \
			log_error("cache: not true: %s", #cond); \
			abort();                                 \
		}                                                \
	} while (0)

static void verify_list(const struct shard *s)
{
	const struct entry *newer = NULL;
	uint64_t n = 0;

	for (const struct entry *e = s->newest; e; newer = e, e = e->older) {
		MUST(e->newer == newer);
		MUST(!newer || e->tick <= newer->tick);
		MUST(shard_find(s, shard_hash(e->set, e->index), e->set,
				e->index) == e);
		MUST(e->buf != NULL);
		MUST(++n <= s->ready);
	}
	MUST(s->oldest == newer);
	MUST(n == s->ready);
	MUST(atomic_load(&s->tail_tick) ==
	     (s->oldest ? s->oldest->tick : UINT64_MAX));
}

uint64_t shard_verify(const struct shard *s, unsigned which, unsigned shards,
		      const _Atomic uint64_t *gauge)
{
	uint64_t used = 0, ready = 0, bytes = 0;

	verify_list(s);
	for (uint64_t i = 0; i < s->buckets; i++) {
		for (const struct entry *e = s->bucket[i]; e; e = e->chain) {
			uint64_t hash = shard_hash(e->set, e->index);

			MUST(hash % shards == which);
			MUST(bucket_of(s, hash) == &s->bucket[i]);
			MUST(++used <= s->used);
			MUST(!e->buf != !e->flight);
			if (!e->buf)
				continue;
			MUST(atomic_load(&e->buf->refs) > 0);
			ready++;
			if (e->buf->gauge == gauge)
				bytes += e->buf->capacity;
		}
	}
	MUST(used == s->used);
	MUST(ready == s->ready);
	return bytes;
}
