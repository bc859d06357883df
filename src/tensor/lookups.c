/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that somebody has asked for. */
#include "tensor/lookups.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct lookup {
	uint32_t number;
	char name[];
};
struct lookups {
	pthread_mutex_t lock; /* of `tree` and `n` */
	void *tree;
	uint32_t n;
	/* Memory that nobody has touched is none. */
	_Atomic(struct lookup *) at[LOOKUPS_MAX];
};

static int by_name(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	return strcmp(x->name, y->name);
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
	if (!tsearch(mine, &l->tree, by_name))
		return -ENOMEM;
	*out = l->n++;
	atomic_store(&l->at[*out], steal_pointer(&mine));
	return 0;
}

const char *lookups_name(struct lookups *l, uint64_t number)
{
	struct lookup *one =
		l && number < LOOKUPS_MAX ? atomic_load(&l->at[number]) : NULL;

	return one ? one->name : NULL;
}

void lookups_free(struct lookups *l)
{
	if (!l)
		return;
	tdestroy(l->tree, free);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
