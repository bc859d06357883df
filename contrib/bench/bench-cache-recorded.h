/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces that `record` took of mounts, for bench-cache; record-cache.c has the format. */
#ifndef BENCH_CACHE_RECORDED_H
#define BENCH_CACHE_RECORDED_H

#include <inttypes.h>
#include <string.h>

#include "bench-cache-traces.h"

/* Loads of one chunk of a set. */
struct loads {
	double ns;
	uint64_t set, size, n;
};

/* ... and of all of a set. */
struct pace {
	uint64_t set;
	double ns, bytes;
};

/* Which chunk has which key, and where it was wanted last. */
struct names {
	struct name {
		uint64_t set, index;
		uint32_t key;
		bool taken;
	} * slot;
	uint32_t slots, n; /* a power of two */
	struct loads *loads;
	size_t *last;
};

static struct name *name_find(const struct names *s, uint64_t set,
			      uint64_t index)
{
	uint64_t h = (index + set * UINT64_C(0x9e3779b97f4a7c15)) *
		     UINT64_C(0xbf58476d1ce4e5b9);
	struct name *at;

	h ^= h >> 31;
	do
		at = &s->slot[h++ & (s->slots - 1)];
	while (at->taken && (at->set != set || at->index != index));
	return at;
}

static void names_grow(struct names *s)
{
	struct names more = *s;

	more.slots = s->slots ? s->slots * 2 : 1024;
	more.slot = need(calloc(more.slots, sizeof *more.slot));
	for (uint32_t i = 0; i < s->slots; i++)
		if (s->slot[i].taken)
			*name_find(&more, s->slot[i].set, s->slot[i].index) =
				s->slot[i];
	more.loads = need(realloc(s->loads, more.slots * sizeof *more.loads));
	more.last = need(realloc(s->last, more.slots * sizeof *more.last));
	free(s->slot);
	*s = more;
}

static uint32_t key_of(struct names *s, uint64_t set, uint64_t index)
{
	struct name *at;

	if (2 * (s->n + 1) > s->slots)
		names_grow(s);
	at = name_find(s, set, index);
	if (!at->taken) {
		*at = (struct name){set, index, s->n, true};
		s->loads[s->n] = (struct loads){.set = set};
		s->last[s->n++] = SIZE_MAX;
	}
	return at->key;
}

static void event(struct trace *t, struct names *s, const char *line)
{
	uint64_t set, index, size, ns;
	char what;
	uint32_t k;
	int n = sscanf(line, "%c %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		       &what, &set, &index, &size, &ns);

	if (n < 3)
		return; /* `cache`, or cut off */
	k = key_of(s, set, index);
	if (what == 'u') {
		s->last[k] = t->n;
		want(t, k, false);
	} else if (what == 'l' && n == 5) {
		s->loads[k].size = size;
		s->loads[k].ns += (double)ns;
		s->loads[k].n++;
	} else if (s->last[k] != SIZE_MAX && what == 'f') {
		t->at[s->last[k]].forward = true;
	} else if (s->last[k] != SIZE_MAX && what == 'a') {
		t->at[s->last[k]].key = UINT32_MAX;
		s->last[k] = SIZE_MAX;
	}
}

static struct pace *pace_find(struct pace *p, uint64_t set)
{
	while (p->bytes > 0 && p->set != set)
		p++;
	p->set = set;
	return p;
}

/* A chunk costs as much as others of its set, by the byte: most are loaded once, and
 * how long that took says more of the machine than of the chunk. */
static void set_costs(struct trace *t, const struct names *s)
{
	struct pace *paces = need(calloc(t->keys + 1, sizeof *paces)), *p;

	for (uint32_t k = 0; k < s->n; k++) {
		const struct loads *l = &s->loads[k];

		if (!l->n)
			continue;
		p = pace_find(paces, l->set);
		p->ns += l->ns;
		p->bytes += (double)(l->size * l->n);
	}
	for (uint32_t k = 0; k < s->n; k++) {
		const struct loads *l = &s->loads[k];

		if (!l->n)
			continue;
		p = pace_find(paces, l->set);
		t->set[k] = l->set;
		t->size[k] = (uint32_t)l->size;
		t->cost[k] = (float)(p->ns / p->bytes * (double)l->size);
	}
	free(paces);
}

/* What was never loaded was never there: those accesses go, and those of nobody. */
static void tidy(struct trace *t, const struct names *s)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint32_t k = t->at[i].key;

		if (k != UINT32_MAX && s->loads[k].n)
			t->at[n++] = t->at[i];
	}
	t->n = n;
}

/* The bytes of all that is wanted are its `capacity`, the cost of it its `whole`. */
static void read_recorded(struct trace *t, const char *path)
{
	struct names s = {0};
	FILE *f = fopen(path, "r");
	char line[256];
	bool *seen;

	if (!f) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof line, f))
		event(t, &s, line);
	fclose(f);
	keys(t, s.n ? s.n : 1, 0);
	t->set = need(calloc(t->keys, sizeof *t->set));
	tidy(t, &s);
	set_costs(t, &s);
	seen = need(calloc(t->keys, sizeof *seen));
	for (size_t i = 0; i < t->n; i++) {
		uint32_t k = t->at[i].key;

		t->capacity += seen[k] ? 0 : t->size[k];
		t->whole += seen[k] ? 0 : t->cost[k];
		seen[k] = true;
	}
	free(seen);
	free(s.slot);
	free(s.loads);
	free(s.last);
}

#endif
