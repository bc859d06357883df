/* SPDX-License-Identifier: BSD-2-Clause */
/* Who asked the cache for what: linked around it by `record`, no part of tensorfs. */
/*
 * The linker's --wrap puts these functions between the cache and those who call it.
 * Each daemon writes $CACHE_TRACES/PID, a line an event, as it happens:
 *
 *	cache BUDGET            there is a cache
 *	u SET INDEX             wanted, whether it was there or not
 *	l SET INDEX SIZE NS     loaded: bytes that it takes, time that it took
 *	a SET INDEX             the last `u` of it was for somebody yet to come
 *	f SET INDEX             a reader who goes forward is through with it
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "store/behind.h"
#include "store/cache_private.h"

struct timed {
	uint64_t set, index;
	cache_load_fn *load;
	void *ctx;
};

/* What the linker calls the functions themselves, and what it has called instead. */
int __real_cache_new(struct cache **out, uint64_t budget, struct error *err);
int __wrap_cache_new(struct cache **out, uint64_t budget, struct error *err);
void __real_cache_free(struct cache *c);
void __wrap_cache_free(struct cache *c);
int __real_cache_get(struct cache *c, uint64_t set, uint64_t index,
		     uint64_t expect, uint64_t scratch, cache_load_fn *load,
		     void *ctx, struct buf **out, struct error *err);
int __wrap_cache_get(struct cache *c, uint64_t set, uint64_t index,
		     uint64_t expect, uint64_t scratch, cache_load_fn *load,
		     void *ctx, struct buf **out, struct error *err);
struct buf *__real_cache_peek(struct cache *c, uint64_t set, uint64_t index);
struct buf *__wrap_cache_peek(struct cache *c, uint64_t set, uint64_t index);
void __real_cache_expect(struct cache *c, uint64_t set, uint64_t index);
void __wrap_cache_expect(struct cache *c, uint64_t set, uint64_t index);
void __real_behind_add(struct behind *b, uint64_t set, uint64_t index,
		       uint64_t bytes, size_t served, bool forward);
void __wrap_behind_add(struct behind *b, uint64_t set, uint64_t index,
		       uint64_t bytes, size_t served, bool forward);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *trace;

static void note(char what, uint64_t set, uint64_t index)
{
	pthread_mutex_lock(&lock);
	if (trace)
		fprintf(trace, "%c %" PRIu64 " %" PRIu64 "\n", what, set,
			index);
	pthread_mutex_unlock(&lock);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int __wrap_cache_new(struct cache **out, uint64_t budget, struct error *err)
{
	const char *where = getenv("CACHE_TRACES");
	char path[4096];

	pthread_mutex_lock(&lock);
	if (where && !trace) {
		snprintf(path, sizeof path, "%s/%ld", where, (long)getpid());
		trace = fopen(path, "we");
	}
	if (trace)
		fprintf(trace, "cache %" PRIu64 "\n", budget);
	pthread_mutex_unlock(&lock);
	return __real_cache_new(out, budget, err);
}

/* Not every process ends by exit. */
void __wrap_cache_free(struct cache *c)
{
	pthread_mutex_lock(&lock);
	if (trace)
		fflush(trace);
	pthread_mutex_unlock(&lock);
	__real_cache_free(c);
}

static int load_timed(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	const struct timed *t = ctx;
	uint64_t start = now();
	int r = t->load(t->ctx, gauge, out, err);
	uint64_t took = now() - start;

	/* What counts in no gauge is memory of somebody else. */
	pthread_mutex_lock(&lock);
	if (trace && r >= 0 && *out)
		fprintf(trace, "l %" PRIu64 " %" PRIu64 " %zu %" PRIu64 "\n",
			t->set, t->index,
			ENTRY_COST +
				((*out)->gauge == gauge ? (*out)->capacity : 0),
			took);
	pthread_mutex_unlock(&lock);
	return r;
}

int __wrap_cache_get(struct cache *c, uint64_t set, uint64_t index,
		     uint64_t expect, uint64_t scratch, cache_load_fn *load,
		     void *ctx, struct buf **out, struct error *err)
{
	struct timed t = {set, index, load, ctx};

	note('u', set, index);
	return __real_cache_get(c, set, index, expect, scratch, load_timed, &t,
				out, err);
}

/* Who misses asks cache_get next, or does without. */
struct buf *__wrap_cache_peek(struct cache *c, uint64_t set, uint64_t index)
{
	struct buf *b = __real_cache_peek(c, set, index);

	if (b)
		note('u', set, index);
	return b;
}

void __wrap_cache_expect(struct cache *c, uint64_t set, uint64_t index)
{
	note('a', set, index);
	__real_cache_expect(c, set, index);
}

void __wrap_behind_add(struct behind *b, uint64_t set, uint64_t index,
		       uint64_t bytes, size_t served, bool forward)
{
	if (forward)
		note('f', set, index);
	__real_behind_add(b, set, index, bytes, served, forward);
}
