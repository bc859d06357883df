/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache in front of the shared chunks: loads through them, and gives up mappings. */

/*
 * A cache entry may be a mapping of a shared chunk.  Its bytes are in memory once for all
 * processes and count in the limit of the shared store.  So they do not count in the
 * budget of the cache, which is for the memory of this process alone.
 *
 * But a mapped chunk is not evicted from the shared store.  So mappings that were not
 * used lately are given up when another process needs their room (a thread looks every
 * few seconds), and the oldest ones when there are more of them than a process should
 * have.  To map a chunk again is cheap.
 */
#include "store/sharing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LOOK_SECONDS 2

struct sharing {
	struct shared *shared;
	struct cache *cache;
	struct handles *handles;
	pthread_t thread;
	pthread_mutex_t lock; /* protects `stop` */
	pthread_cond_t ended;
	bool stop;
};

/* ---- giving up ------------------------------------------------------------- */

/* Wait for the next look.  Return false when the thread is to end. */
static bool doze(struct sharing *s)
{
	struct timespec until = clock_after(LOOK_SECONDS * CLOCK_SECOND);

	lock_scope(&s->lock);
	while (!s->stop &&
	       pthread_cond_timedwait(&s->ended, &s->lock, &until) == 0)
		;
	return !s->stop;
}

static void *give_up_unused(void *ctx)
{
	struct sharing *s = ctx;
	uint64_t mark = cache_mark(s->cache);

	while (doze(s)) {
		if (shared_is_wanted(s->shared))
			cache_drop_unused(s->cache, mark, UINT64_MAX);
		mark = cache_mark(s->cache);
	}
	return NULL;
}

int sharing_new(struct sharing **out, struct shared *shared,
		struct cache *cache, struct handles *handles, struct error *err)
{
	struct sharing *s = calloc(1, sizeof *s);
	pthread_condattr_t attr;
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the chunks in shared memory");
	s->shared = shared;
	s->cache = cache;
	s->handles = handles;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->ended, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&s->thread, NULL, give_up_unused, s);
	if (r) {
		pthread_cond_destroy(&s->ended);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return error_errno(
			err, -r,
			"cannot start the thread that gives up shared chunks");
	}
	*out = s;
	return 0;
}

void sharing_free(struct sharing *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->ended);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->ended);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- loading --------------------------------------------------------------- */

struct load {
	struct sharing *s;
	const struct shared_key *key;
	const struct chunk *chunk;
	cache_load_fn *load;
	void *ctx;
};

static int load_into(void *ctx, void *to, struct error *err)
{
	struct load *l = ctx;

	return chunk_load(l->s->handles, l->chunk, to, err);
}

static int load_alone(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	struct load *l = ctx;

	return l->load(l->ctx, gauge, out, err);
}

static int load_shared(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		       struct error *err)
{
	struct load *l = ctx;
	struct shared_maker m = {
		.size = l->chunk->state == CHUNK_STORED ? l->chunk->size : 0,
		.into = load_into,
		.make = load_alone,
		.ctx = l};
	int r;

	if (shared_is_crowded(l->s->shared))
		cache_drop_unused(l->s->cache, UINT64_MAX,
				  shared_crowd(l->s->shared));
	r = shared_get(l->s->shared, l->key, &m, gauge, out, err);
	if (r >= 0 && *out && l->chunk->useful)
		(*out)->useful = l->chunk->useful;
	return r;
}

int sharing_get(struct sharing *s, struct chunk_set *set, uint64_t index,
		const struct chunk *c, cache_load_fn *load, void *ctx,
		struct buf **out, struct error *err)
{
	uint64_t cost = buf_cost(c->size);
	uint64_t scratch = c->state == CHUNK_FETCH ? c->size : chunk_scratch(c);
	struct shared_key key;
	struct load l = {s, &key, c, load, ctx};
	int r = shared_key_of(s->shared, &key, s->handles, set, index, c, err);

	if (r < 0)
		return r;
	if (r > 0)
		return cache_get(s->cache, set->id, index, cost, scratch, load,
				 ctx, out, err);
	/* A chunk that is there already needs no memory of this process. */
	if (shared_has(s->shared, &key))
		cost = scratch = 0;
	r = cache_get(s->cache, set->id, index, cost, scratch, load_shared, &l,
		      out, err);
	shared_key_free(&key);
	return r;
}
