/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache itself as a policy of bench-cache; loads take what the trace says. */
#ifndef BENCH_CACHE_CODE_H
#define BENCH_CACHE_CODE_H

#include "bench-cache-policies.h"
#include "store/cache_private.h"

/* Bytes of one of size 1, where sizes are made up. */
#define CODE_UNIT 65536

/* The linker's --wrap puts this between cache.c and policy.c. */
uint8_t __real_policy_weigh(struct cache *c, uint64_t set, uint64_t ns,
			    uint64_t bytes);
uint8_t __wrap_policy_weigh(struct cache *c, uint64_t set, uint64_t ns,
			    uint64_t bytes);

static uint64_t load_ns;

uint8_t __wrap_policy_weigh(struct cache *c, uint64_t set, uint64_t ns,
			    uint64_t bytes)
{
	(void)ns;
	return __real_policy_weigh(c, set, load_ns, bytes);
}

static uint64_t bytes_of(const struct trace *t, uint64_t size)
{
	return t->whole > 0 ? size : size * CODE_UNIT;
}

struct code_load {
	const struct trace *t;
	uint32_t key;
	bool loaded;
};

/* Nobody looks at the bytes: all buffers are around the same one. */
static void release(void *ctx, void *data, size_t capacity)
{
	(void)ctx;
	(void)data;
	(void)capacity;
}

static int load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		struct error *err)
{
	static unsigned char byte;
	struct code_load *l = ctx;
	uint64_t bytes = bytes_of(l->t, l->t->size[l->key]);

	bytes = bytes > ENTRY_COST ? bytes - ENTRY_COST : 1;
	l->loaded = true;
	load_ns = (uint64_t)((double)l->t->cost[l->key] *
			     (l->t->whole > 0 ? 1 : CODE_UNIT));
	*out = need(buf_around(&byte, bytes, bytes, gauge, release, NULL));
	(void)err;
	return 0;
}

static bool code(struct sim *s, size_t i, uint32_t k)
{
	struct code_load l = {s->t, k, false};
	uint64_t set = set_of(s->t, k);
	struct buf *b = NULL;

	if (!s->cache &&
	    cache_new(&s->cache, bytes_of(s->t, s->t->capacity), NULL))
		exit(1);
	b = cache_peek(s->cache, set, k);
	if (!b && cache_get(s->cache, set, k, bytes_of(s->t, s->t->size[k]), 0,
			    load, &l, &b, NULL))
		exit(1);
	buf_unref(b);
	drop_behind(s, i, k);
	return !l.loaded;
}

#endif
