/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing set of paths, numbered from 0 in the order of their addition. */
#include "extent/paths.h"

#include <string.h>

#include "base/vec.h"

/* Return the slot of `path`, or the free slot where it belongs. */
static uint32_t *paths_slot(const struct paths *p, const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const char *c;
	size_t i;

	for (c = path; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	i = (size_t)(hash ^ hash >> 32) & (p->nslots - 1);
	while (p->slots[i] && strcmp(p->at[p->slots[i] - 1], path))
		i = (i + 1) & (p->nslots - 1);
	return &p->slots[i];
}

/* Make room for one more in the hash table, which is at most three quarters full. */
static bool paths_grow_slots(struct paths *p)
{
	size_t want = p->nslots ? p->nslots * 2 : 16, i;
	uint32_t *slots;

	if (p->nslots && p->n + 1 <= p->nslots / 4 * 3)
		return true;
	slots = calloc(want, sizeof *slots);
	if (!slots)
		return false;
	free(p->slots);
	p->slots = slots;
	p->nslots = want;
	for (i = 0; i < p->n; i++)
		*paths_slot(p, p->at[i]) = (uint32_t)i + 1;
	return true;
}

uint32_t paths_add(struct paths *p, const char *path)
{
	uint32_t *slot;
	char *copy;

	if (p->n >= PATHS_NONE - 1 || !paths_grow_slots(p))
		return PATHS_NONE;
	slot = paths_slot(p, path);
	if (*slot)
		return *slot - 1;
	copy = strdup(path);
	if (!copy)
		return PATHS_NONE;
	if (!vec_push(p, copy)) {
		free(copy);
		return PATHS_NONE;
	}
	*slot = (uint32_t)p->n;
	return *slot - 1;
}

void paths_free(struct paths *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		free(p->at[i]);
	free(p->slots);
	vec_free(p);
}
