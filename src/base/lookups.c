/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that were looked up, and their numbers. */
/*
 * A name is held as many times as the kernel has looked it up and not yet forgotten it.
 * Names with no holds are in a list, the most recently used at its end; the first ones
 * are dropped to make room.  Between finding a name and holding it, the name may have
 * been dropped, if many others were used meanwhile: lookups_hold then says so, and no
 * other name has got its number by then.
 */
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
#include "base/number.h"

struct lookup {
	struct lookup *before, *behind; /* in the list of names with no holds */
	uint64_t holds;
	uint32_t number, generation;
	char name[];
};
struct lookups {
	pthread_mutex_t lock;  /* protects all below */
	void *names, *numbers; /* trees of tsearch(3) */
	struct lookup *first, *last;
	uint32_t n, held;
	uint32_t next, generation; /* those of the next name */
	bool again;                /* all numbers were given once */
};

static int compare_lookup_names(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_lookup_numbers(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static struct lookup *lookup_find_number(const struct lookups *l,
					 uint64_t number)
{
	struct lookup key = {.number = (uint32_t)number};
	struct lookup **found = NULL;

	if (number < LOOKUPS_NUMBERS)
		found = tfind(&key, &l->numbers, compare_lookup_numbers);
	return found ? *found : NULL;
}

/* ---- the list ------------------------------------------------------------ */

static void lookup_list_append(struct lookups *l, struct lookup *x)
{
	x->before = l->last;
	x->behind = NULL;
	*(l->last ? &l->last->behind : &l->first) = x;
	l->last = x;
}

static void lookup_list_remove(struct lookups *l, struct lookup *x)
{
	*(x->before ? &x->before->behind : &l->first) = x->behind;
	*(x->behind ? &x->behind->before : &l->last) = x->before;
}

static void lookup_mark_used(struct lookups *l, struct lookup *x)
{
	if (x->holds || x == l->last)
		return;
	lookup_list_remove(l, x);
	lookup_list_append(l, x);
}

static void lookup_forget(struct lookups *l, struct lookup *x)
{
	lookup_list_remove(l, x);
	tdelete(x, &l->names, compare_lookup_names);
	tdelete(x, &l->numbers, compare_lookup_numbers);
	free(x);
	l->n--;
}

static void lookups_make_room(struct lookups *l)
{
	while (l->n - l->held > LOOKUPS_MAX)
		lookup_forget(l, l->first);
}

/* ---- making -------------------------------------------------------------- */

/* A number made of the time, so that it is another one after a restart; odd. */
static uint32_t new_generation(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000) | 1;
}

static struct lookups *lookups_get_or_make(_Atomic(struct lookups *) *where)
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

/* Set *out to the next number that no name has.  Return false if all numbers were given
 * and `once` is set. */
static bool new_number(struct lookups *l, bool once, uint32_t *out)
{
	do {
		if (l->next == LOOKUPS_NUMBERS) {
			l->next = 0;
			l->again = true;
			l->generation += 2; /* stays odd, so it is never 0 */
		}
		if (once && l->again)
			return false;
		*out = l->next++;
	} while (l->again && lookup_find_number(l, *out));
	return true;
}

static bool lookup_insert(struct lookups *l, struct lookup *x)
{
	if (!tsearch(x, &l->names, compare_lookup_names))
		return false;
	if (!tsearch(x, &l->numbers, compare_lookup_numbers)) {
		tdelete(x, &l->names, compare_lookup_names);
		return false;
	}
	lookup_list_append(l, x);
	l->n++;
	return true;
}

int lookups_number(_Atomic(struct lookups *) *where, const char *name,
		   bool once, uint32_t *out)
{
	struct lookups *l = lookups_get_or_make(where);
	size_t size = strlen(name) + 1;
	cleanup_free struct lookup *mine = NULL;
	struct lookup **found;

	if (size > LOOKUPS_NAME_MAX)
		return -ENAMETOOLONG;
	mine = l ? calloc(1, offsetof(struct lookup, name) + size) : NULL;
	if (!mine)
		return -ENOMEM;
	memcpy(mine->name, name, size);
	lock_scope(&l->lock);
	found = tfind(mine, &l->names, compare_lookup_names);
	if (found) {
		lookup_mark_used(l, *found);
		*out = (*found)->number;
		return 0;
	}
	if (l->held >= LOOKUPS_HELD_MAX || !new_number(l, once, &mine->number))
		return -ENOSPC;
	mine->generation = l->generation;
	if (!lookup_insert(l, mine))
		return -ENOMEM;
	*out = steal_pointer(&mine)->number;
	lookups_make_room(l);
	return 0;
}

/* ---- what is kept -------------------------------------------------------- */

bool lookups_name(struct lookups *l, uint64_t number,
		  char buf[LOOKUPS_NAME_MAX])
{
	struct lookup *x;

	if (!l)
		return false;
	lock_scope(&l->lock);
	x = lookup_find_number(l, number);
	if (!x)
		return false;
	lookup_mark_used(l, x);
	memcpy(buf, x->name, strlen(x->name) + 1);
	return true;
}

int lookups_hold(struct lookups *l, uint64_t number, int64_t n)
{
	struct lookup *x;
	uint64_t less = n < 0 ? -(uint64_t)n : 0;

	if (!l)
		return -ENOENT;
	lock_scope(&l->lock);
	x = lookup_find_number(l, number);
	if (!x)
		return -ENOENT;
	if (n > 0 && !x->holds) {
		lookup_list_remove(l, x);
		l->held++;
	}
	if (n > 0)
		x->holds += (uint64_t)n;
	if (!less || !x->holds)
		return 0;
	x->holds -= min_u64(less, x->holds);
	if (!x->holds) {
		lookup_list_append(l, x);
		l->held--;
		lookups_make_room(l);
	}
	return 0;
}

uint32_t lookups_generation(struct lookups *l, uint64_t number)
{
	struct lookup *x;

	if (!l)
		return 1;
	lock_scope(&l->lock);
	x = lookup_find_number(l, number);
	return x ? x->generation : l->generation;
}

void lookups_skip(struct lookups *l, uint32_t number)
{
	lock_scope(&l->lock);
	l->next = number;
}

static void lookup_is_freed_by_name(void *x)
{
	(void)x;
}

void lookups_free(struct lookups *l)
{
	if (!l)
		return;
	tdestroy(l->numbers, lookup_is_freed_by_name);
	tdestroy(l->names, free);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
