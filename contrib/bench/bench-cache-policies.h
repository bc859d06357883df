/* SPDX-License-Identifier: BSD-2-Clause */
/* What to keep of a trace: the policies of bench-cache. */
#ifndef BENCH_CACHE_POLICIES_H
#define BENCH_CACHE_POLICIES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench-cache-traces.h"
#include "store/cache.h"

enum { NONE = UINT32_MAX };

/* ---- lists of keys ------------------------------------------------------- */

struct node {
	uint32_t newer, older;
	uint8_t where; /* which list; 0: none */
	uint8_t freq;
	double rank;
	uint64_t next; /* Belady: the access that wants it next */
};
struct list {
	uint32_t newest, oldest;
	uint64_t bytes, n;
	uint8_t id;
};

struct sim {
	const struct trace *t;
	struct node *node;
	struct list a, b, ghost, ghost_b;
	uint32_t hand;
	uint64_t *next;
	double clock;
	uint64_t counter;
	double target, pace;
	size_t passed; /* accesses up to here are behind forward readers */
	double following;
	struct cache *cache; /* the code itself */
};

static void list_init(struct list *l, uint8_t id)
{
	*l = (struct list){.newest = NONE, .oldest = NONE, .id = id};
}

static void push(struct sim *s, struct list *l, uint32_t k)
{
	struct node *n = &s->node[k];

	n->older = l->newest;
	n->newer = NONE;
	*(l->newest != NONE ? &s->node[l->newest].newer : &l->oldest) = k;
	l->newest = k;
	l->bytes += s->t->size[k];
	l->n++;
	n->where = l->id;
}

static void pull(struct sim *s, struct list *l, uint32_t k)
{
	struct node *n = &s->node[k];

	*(n->newer != NONE ? &s->node[n->newer].older : &l->newest) = n->older;
	*(n->older != NONE ? &s->node[n->older].newer : &l->oldest) = n->newer;
	l->bytes -= s->t->size[k];
	l->n--;
	n->where = 0;
}

/* ---- policies ------------------------------------------------------------ */

/* True: it was there. */
typedef bool policy_fn(struct sim *s, size_t i, uint32_t k);

static bool lru(struct sim *s, size_t i, uint32_t k)
{
	bool hit = s->node[k].where;

	(void)i;
	if (hit)
		pull(s, &s->a, k);
	push(s, &s->a, k);
	while (s->a.bytes > s->t->capacity)
		pull(s, &s->a, s->a.oldest);
	return hit;
}

static uint64_t set_of(const struct trace *t, uint32_t k)
{
	return t->set ? t->set[k] : (uint64_t)(t->cost[k] / (float)t->size[k]);
}

/* Drop what is behind a forward reader by an eighth of the room. */
static void drop_behind(struct sim *s, size_t i, uint32_t k)
{
	if (!s->t->at[i].forward)
		return;
	for (; s->passed < i; s->passed++) {
		uint32_t old = s->t->at[s->passed].key;
		struct node *n = &s->node[old];

		if (!s->t->at[s->passed].forward)
			continue;
		if (s->following < (double)s->t->capacity / 8)
			break;
		s->following -= s->t->size[old];
		if (s->cache)
			cache_drop(s->cache, set_of(s->t, old), old);
		else if (n->where == s->a.id || n->where == s->b.id)
			pull(s, n->where == s->a.id ? &s->a : &s->b, old);
	}
	s->following += s->t->size[k];
}

static bool behind(struct sim *s, size_t i, uint32_t k)
{
	bool hit = lru(s, i, k);

	drop_behind(s, i, k);
	return hit;
}

static bool fifo(struct sim *s, size_t i, uint32_t k)
{
	(void)i;
	if (s->node[k].where)
		return true;
	push(s, &s->a, k);
	while (s->a.bytes > s->t->capacity)
		pull(s, &s->a, s->a.oldest);
	return false;
}

static bool clock_2(struct sim *s, size_t i, uint32_t k)
{
	(void)i;
	if (s->node[k].where) {
		s->node[k].freq = 1;
		return true;
	}
	s->node[k].freq = 0;
	push(s, &s->a, k);
	while (s->a.bytes > s->t->capacity) {
		uint32_t old = s->a.oldest;

		pull(s, &s->a, old);
		if (s->node[old].freq) {
			s->node[old].freq = 0;
			push(s, &s->a, old);
		}
	}
	return false;
}

static bool sieve(struct sim *s, size_t i, uint32_t k)
{
	(void)i;
	if (s->node[k].where) {
		s->node[k].freq = 1;
		return true;
	}
	s->node[k].freq = 0;
	while (s->a.bytes + s->t->size[k] > s->t->capacity) {
		uint32_t h = s->hand != NONE ? s->hand : s->a.oldest;

		while (s->node[h].freq) {
			s->node[h].freq = 0;
			h = s->node[h].newer != NONE ? s->node[h].newer
						     : s->a.oldest;
		}
		s->hand = s->node[h].newer;
		pull(s, &s->a, h);
	}
	push(s, &s->a, k);
	return false;
}

/* S3-FIFO: a is the small queue, b the main one; ghosts as many as b. */
static void s3_evict(struct sim *s)
{
	uint32_t k;

	if (s->a.n && (s->a.bytes > s->t->capacity / 10 || !s->b.n)) {
		k = s->a.oldest;
		pull(s, &s->a, k);
		if (s->node[k].freq > 1) {
			s->node[k].freq = 0;
			push(s, &s->b, k);
			return;
		}
		push(s, &s->ghost, k);
		while (s->ghost.bytes > s->t->capacity * 9 / 10)
			pull(s, &s->ghost, s->ghost.oldest);
		return;
	}
	k = s->b.oldest;
	pull(s, &s->b, k);
	if (s->node[k].freq) {
		s->node[k].freq--;
		push(s, &s->b, k);
	}
}

static bool s3_fifo(struct sim *s, size_t i, uint32_t k)
{
	struct node *n = &s->node[k];
	bool seen = n->where == s->ghost.id;

	(void)i;
	if (n->where && !seen) {
		n->freq += n->freq < 3;
		return true;
	}
	if (seen)
		pull(s, &s->ghost, k);
	n->freq = 0;
	push(s, seen ? &s->b : &s->a, k);
	while (s->a.bytes + s->b.bytes > s->t->capacity)
		s3_evict(s);
	return false;
}

/* Segmented LRU: what was used twice is in b, at most four fifths. */
static bool slru(struct sim *s, size_t i, uint32_t k)
{
	uint8_t where = s->node[k].where;

	(void)i;
	if (where) {
		pull(s, where == s->a.id ? &s->a : &s->b, k);
		push(s, &s->b, k);
		while (s->b.bytes > s->t->capacity * 4 / 5) {
			uint32_t old = s->b.oldest;

			pull(s, &s->b, old);
			push(s, &s->a, old);
		}
	} else {
		push(s, &s->a, k);
	}
	while (s->a.bytes + s->b.bytes > s->t->capacity)
		pull(s, s->a.n ? &s->a : &s->b,
		     s->a.n ? s->a.oldest : s->b.oldest);
	return where;
}

/* As store/policy.c does it: a young, b proven, a ghost list for each. */
static unsigned weight(const struct sim *s, uint32_t k)
{
	double w = (double)s->t->cost[k] / s->t->size[k] / s->pace + 0.5;

	return w < 1 ? 1 : w > 8 ? 8 : (unsigned)w;
}

static void prove(struct sim *s, uint32_t k)
{
	s->node[k].freq = (uint8_t)(weight(s, k) - 1);
	push(s, &s->b, k);
}

static void store_evict(struct sim *s)
{
	bool young = s->a.n && ((double)s->a.bytes > s->target || !s->b.n);
	struct list *ghosts = young ? &s->ghost : &s->ghost_b;
	uint32_t k = young ? s->a.oldest : s->b.oldest;

	pull(s, young ? &s->a : &s->b, k);
	if (s->node[k].freq && young) {
		prove(s, k);
		return;
	}
	if (s->node[k].freq) {
		s->node[k].freq--;
		push(s, &s->b, k);
		return;
	}
	push(s, ghosts, k);
	while (ghosts->bytes > s->t->capacity * 9 / 10)
		pull(s, ghosts, ghosts->oldest);
}

static bool store_use(struct sim *s, uint32_t k)
{
	struct node *n = &s->node[k];

	if (s->counter - n->next < 128)
		return true; /* of the same burst */
	n->next = s->counter;
	if (n->where == s->a.id) {
		n->freq = 1;
	} else {
		pull(s, &s->b, k);
		prove(s, k);
	}
	return true;
}

static bool store(struct sim *s, size_t i, uint32_t k)
{
	double least = (double)s->t->capacity / 6, step = 2.0 * s->t->size[k];
	struct node *n = &s->node[k];
	bool young = n->where == s->ghost.id,
	     proven = n->where == s->ghost_b.id;

	s->counter++;
	if (!i) {
		s->target = 0.75 * (double)s->t->capacity;
		s->pace = (double)s->t->cost[k] / s->t->size[k];
	}
	if (n->where && !young && !proven)
		return store_use(s, k);
	s->pace += ((double)s->t->cost[k] / s->t->size[k] - s->pace) / 64;
	if (young) {
		pull(s, &s->ghost, k);
		s->target =
			fmin(s->target + step, 0.9 * (double)s->t->capacity);
	} else if (proven) {
		pull(s, &s->ghost_b, k);
		s->target = fmax(s->target - step, least);
	}
	n->freq = 0;
	n->next = s->counter;
	if (young || proven)
		prove(s, k);
	else
		push(s, &s->a, k);
	while (s->a.bytes + s->b.bytes > s->t->capacity)
		store_evict(s);
	return false;
}

/* The least of `rank` goes. For small traces: looks at 64 drawn ones. */
static uint32_t least(struct sim *s)
{
	uint32_t best = NONE;

	for (int tries = 0; tries < 64 || best == NONE; tries++) {
		uint32_t k = (uint32_t)draw(s->t->keys);

		if (s->node[k].where &&
		    (best == NONE || s->node[k].rank < s->node[best].rank))
			best = k;
	}
	return best;
}

/* Greedy-dual with frequency: clock + uses * cost / size. */
static bool gdsf(struct sim *s, size_t i, uint32_t k)
{
	struct node *n = &s->node[k];
	bool hit = n->where;

	(void)i;
	n->freq = hit ? n->freq + (n->freq < 255) : 1;
	n->rank = s->clock + n->freq * (double)s->t->cost[k] / s->t->size[k];
	if (hit)
		return true;
	while (s->a.bytes + s->t->size[k] > s->t->capacity) {
		uint32_t old = least(s);

		s->clock = s->node[old].rank;
		pull(s, &s->a, old);
	}
	push(s, &s->a, k);
	return false;
}

static bool belady(struct sim *s, size_t i, uint32_t k)
{
	bool hit = s->node[k].where;

	s->node[k].next = s->next[i];
	s->node[k].rank = -(double)s->next[i] * s->t->size[k] / s->t->cost[k];
	if (hit)
		return true;
	push(s, &s->a, k);
	while (s->a.bytes > s->t->capacity) {
		uint32_t worst = s->a.oldest;

		for (uint32_t x = s->a.oldest; x != NONE;
		     x = s->node[x].newer) {
			double p = (double)(s->node[x].next - i) *
				   s->t->size[x] / s->t->cost[x];
			double q = (double)(s->node[worst].next - i) *
				   s->t->size[worst] / s->t->cost[worst];

			if (p > q)
				worst = x;
		}
		pull(s, &s->a, worst);
	}
	return false;
}

#endif
