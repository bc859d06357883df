/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that somebody has asked for. */
#include "base/lookups.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

struct lookup {
	uint32_t number;
	char name[];
};
/* Tables that are each twice as long as the one before, so that one name costs little,
 * and what is in them never moves. */
#define FIRST_BITS 4
#define TABLES 13 /* with 16 << 0 ... 16 << 12 names: enough */
struct lookups {
	pthread_mutex_t lock; /* of `tree` and `n` */
	void *tree;
	uint32_t n, generation;
	_Atomic(_Atomic(struct lookup *) *) table[TABLES];
};
_Static_assert(((1u << TABLES) - 1) << FIRST_BITS >= LOOKUPS_MAX,
	       "tables have room for all");

static int by_name(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Which table has a number, and where in it. */
static unsigned table_of(uint64_t number, uint64_t *place)
{
	uint64_t first = number + (1u << FIRST_BITS);
	unsigned t = 63 - (unsigned)__builtin_clzll(first) - FIRST_BITS;

	*place = first - (UINT64_C(1) << FIRST_BITS << t);
	return t;
}

/* The place of the next number; NULL: no memory. */
static _Atomic(struct lookup *) *next_place(struct lookups *l)
{
	uint64_t place;
	unsigned t = table_of(l->n, &place);
	_Atomic(struct lookup *) *table = atomic_load(&l->table[t]);

	if (!table) {
		table = calloc((size_t)1 << FIRST_BITS << t, sizeof *table);
		atomic_store(&l->table[t], table);
	}
	return table ? &table[place] : NULL;
}

/* What the clock says, which is later the next time. */
static uint32_t new_generation(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000) | 1;
}

static struct lookups *made(_Atomic(struct lookups *) *where)
{
	struct lookups *l = atomic_load(where), *none = NULL;

	if (l)
		return l;
	l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->generation = new_generation();
	if (atomic_compare_exchange_strong(where, &none, l))
		return l;
	lookups_free(l);
	return none;
}

int lookups_number(_Atomic(struct lookups *) *where, const char *name,
		   uint32_t *out)
{
	struct lookups *l = made(where);
	size_t size = strlen(name) + 1;
	cleanup_free struct lookup *mine = NULL;
	_Atomic(struct lookup *) *place;
	struct lookup **found;

	mine = l ? malloc(offsetof(struct lookup, name) + size) : NULL;
	if (!mine)
		return -ENOMEM;
	memcpy(mine->name, name, size);
	lock_scope(&l->lock);
	found = tfind(mine, &l->tree, by_name);
	if (found) {
		*out = (*found)->number;
		return 0;
	}
	if (l->n == LOOKUPS_MAX)
		return -ENOSPC;
	mine->number = l->n;
	place = next_place(l);
	if (!place || !tsearch(mine, &l->tree, by_name))
		return -ENOMEM;
	*out = l->n++;
	atomic_store(place, steal_pointer(&mine));
	return 0;
}

const char *lookups_name(struct lookups *l, uint64_t number)
{
	_Atomic(struct lookup *) *table;
	struct lookup *one;
	uint64_t place;

	if (!l || number >= LOOKUPS_MAX)
		return NULL;
	table = atomic_load(&l->table[table_of(number, &place)]);
	one = table ? atomic_load(&table[place]) : NULL;
	return one ? one->name : NULL;
}

uint32_t lookups_generation(const struct lookups *l)
{
	return l ? l->generation : 1;
}

void lookups_free(struct lookups *l)
{
	if (!l)
		return;
	tdestroy(l->tree, free);
	for (unsigned t = 0; t < TABLES; t++)
		free(atomic_load(&l->table[t]));
	pthread_mutex_destroy(&l->lock);
	free(l);
}
