/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chunks to keep: policies on traces, against one that knows the future. */
/*
 * Usage: bench-cache [TRACE]
 *        bench-cache FILE...
 *
 * The first replays made-up traces, those that have TRACE in their names; the second
 * those that `record` took of mounts (arguments that have a / are files), with room
 * for 10, 30, 60 and 80 % of the bytes of all that is wanted. There 100 is
 * a cache that has everything once it was loaded: each chunk is paid for once.
 *
 * A trace is a list of chunks in the order in which reads want them; chunks have a
 * size and a cost, which is what it takes to decode one again. A policy sees them
 * go by with so much room. Printed is the share of the cost of all accesses that
 * had to be paid, in per cent: 0 is a cache that has everything, 100 one that has
 * nothing. `best` is Belady's rule (what is wanted last goes first), with cost and
 * size only as a tie of it, so it is a bound where all chunks are alike and close
 * to one elsewhere.
 *
 * `store` is a model of store/policy.c.  `behind` is least recently used, and what a reader who
 * goes forward is through with is dropped soon after (store/behind.c, which stands
 * beside any policy); `code` is store/cache.c and policy.c themselves, with that: what
 * a mount does. `record` builds and runs this program.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench-cache-code.h"
#include "bench-cache-policies.h"
#include "bench-cache-recorded.h"
#include "bench-cache-traces.h"

static const struct {
	const char *name;
	policy_fn *want;
} policies[] = {
	{"lru", lru},       {"behind", behind}, {"fifo", fifo},
	{"clock", clock_2}, {"sieve", sieve},   {"s3fifo", s3_fifo},
	{"slru", slru},     {"gdsf", gdsf},     {"store", store},
	{"code", code},     {"best", belady},
};

/* ---- running ------------------------------------------------------------- */

static void know_future(struct sim *s)
{
	uint64_t *last = need(calloc(s->t->keys, sizeof *last));

	s->next = need(calloc(s->t->n, sizeof *s->next));
	for (uint32_t k = 0; k < s->t->keys; k++)
		last[k] = 4 * s->t->n;
	for (size_t i = s->t->n; i-- > 0;) {
		s->next[i] = last[s->t->at[i].key];
		last[s->t->at[i].key] = i;
	}
	free(last);
}

/* The cost that was paid, in per cent of that of all accesses, or of t->whole. */
static double run(const struct trace *t, policy_fn *policy)
{
	struct sim s = {.t = t, .hand = NONE};
	double paid = 0, all = 0;

	s.node = need(calloc(t->keys, sizeof *s.node));
	list_init(&s.a, 1);
	list_init(&s.b, 2);
	list_init(&s.ghost, 3);
	list_init(&s.ghost_b, 4);
	know_future(&s);
	for (size_t i = 0; i < t->n; i++) {
		uint32_t k = t->at[i].key;

		all += t->cost[k];
		/* What is larger than the cache is never kept. */
		if (t->size[k] > t->capacity || !policy(&s, i, k))
			paid += t->cost[k];
	}
	cache_free(s.cache);
	free(s.next);
	free(s.node);
	return 100 * paid / (t->whole > 0 ? t->whole : all);
}

static void row(const struct trace *t)
{
	printf("%-26s", t->name);
	for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
		printf(" %7.2f", run(t, policies[p].want));
		fflush(stdout);
	}
	printf("\n");
}

static void trace_free(struct trace *t)
{
	free(t->at);
	free(t->size);
	free(t->cost);
	free(t->set);
}

static void made_up(const char *wanted)
{
	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		struct trace t = {.name = traces[i].name};

		if (wanted && !strstr(t.name, wanted))
			continue;
		state = SEED; /* whoever drew before */
		traces[i].make(&t);
		row(&t);
		trace_free(&t);
	}
}

static void recorded(const char *path)
{
	static const unsigned rooms[] = {10, 30, 60, 80};
	struct trace t = {0};
	char name[64];
	uint64_t all;

	state = SEED;
	read_recorded(&t, path);
	all = t.capacity;
	printf("%s: %zu accesses to %u chunks, %.1f MiB\n", path, t.n, t.keys,
	       (double)all / (1 << 20));
	for (size_t i = 0; t.n && i < sizeof rooms / sizeof *rooms; i++) {
		snprintf(name, sizeof name, "  room for %u %%", rooms[i]);
		t.name = name;
		t.capacity = all * rooms[i] / 100;
		row(&t);
	}
	trace_free(&t);
}

int main(int argc, char **argv)
{
	printf("%-26s", "cost paid, %");
	for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
		printf(" %7s", policies[p].name);
	printf("\n");
	if (argc < 2 || !strchr(argv[1], '/'))
		made_up(argc < 2 ? NULL : argv[1]);
	else
		for (int i = 1; i < argc; i++)
			recorded(argv[i]);
	return 0;
}
