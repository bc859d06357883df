/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: what was met in the walk, by number; open addressing. */
#include "formats/squashfs/walk.h"

#include <stdlib.h>
#include <string.h>

static size_t map_slot(const struct squashfs_map *m, uint64_t key)
{
	uint64_t h = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 20) & (m->room - 1);

	while (m->at[2 * i] && m->at[2 * i] != key + 1)
		i = (i + 1) & (m->room - 1);
	return 2 * i;
}

uint64_t *squashfs_map_find(const struct squashfs_map *m, uint64_t key)
{
	size_t i;

	if (!m->room)
		return NULL;
	i = map_slot(m, key);
	return m->at[i] ? &m->at[i + 1] : NULL;
}

static bool map_grow(struct squashfs_map *m)
{
	struct squashfs_map old = *m;

	m->room = old.room ? 2 * old.room : 256;
	m->at = calloc(m->room, 2 * sizeof *m->at);
	if (!m->at) {
		*m = old;
		return false;
	}
	for (size_t i = 0; i < 2 * old.room; i += 2)
		if (old.at[i])
			memcpy(&m->at[map_slot(m, old.at[i] - 1)], &old.at[i],
			       2 * sizeof *m->at);
	free(old.at);
	return true;
}

bool squashfs_map_set(struct squashfs_map *m, uint64_t key, uint64_t value)
{
	size_t i;

	if (2 * m->n >= m->room && !map_grow(m))
		return false;
	i = map_slot(m, key);
	m->n += !m->at[i];
	m->at[i] = key + 1;
	m->at[i + 1] = value;
	return true;
}
