/* SPDX-License-Identifier: BSD-2-Clause */
/* Members by sample: binary searches, whatever the number of shards. */
#include <errno.h>
#include <string.h>

#include "views/members/keys.h"

static uint32_t group_record(const struct keys *k, uint64_t g)
{
	return k->entry[k->group[g].first];
}

/* Groups whose records are below `record`. */
static uint64_t groups_below(const struct keys *k, uint64_t record)
{
	uint64_t lo = 0, hi = k->n_groups;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (group_record(k, mid) < record)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t dirs_below(const struct keys *k, uint64_t record)
{
	uint64_t lo = 0, hi = k->n_dirs;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (k->dir[mid] < record)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct keys_slice keys_groups_in(const struct keys *k, uint64_t dir)
{
	const struct member_record *r = &k->m->at[dir];
	uint64_t first = groups_below(k, r->data);

	return (struct keys_slice){first,
				   groups_below(k, r->data + r->size) - first};
}

struct keys_slice keys_dirs_in(const struct keys *k, uint64_t dir)
{
	const struct member_record *r = &k->m->at[dir];
	uint64_t first = dirs_below(k, r->data);

	return (struct keys_slice){first,
				   dirs_below(k, r->data + r->size) - first};
}

bool keys_has_dir(const struct keys *k, uint64_t record)
{
	uint64_t i = dirs_below(k, record);

	return i < k->n_dirs && k->dir[i] == record;
}

const struct keys_group *keys_moved_in(const struct keys *k, uint64_t dir)
{
	uint64_t lo = 0, hi = k->n_moved;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (k->moved[mid].dir < dir)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < k->n_moved && k->moved[lo].dir == dir ? &k->moved[lo].group
							  : NULL;
}

/* A member's name and "NAME.", as far as the latter goes. */
static int compare_key(const char *member, const char *name, size_t len)
{
	int c = strncmp(member, name, len);

	if (c)
		return c;
	return ((unsigned char)member[len] > '.') -
	       ((unsigned char)member[len] < '.');
}

int keys_find_group(const struct keys *k, uint64_t dir, const char *name,
		    uint64_t *group)
{
	struct keys_slice s = keys_groups_in(k, dir);
	uint64_t lo = s.first, hi = s.first + s.n;
	size_t len = strlen(name);

	if (!len || strchr(name, '.'))
		return -ENOENT;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		int c = compare_key(
			member_name(k->m, &k->m->at[group_record(k, mid)]),
			name, len);

		if (c == 0) {
			*group = mid;
			return 0;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -ENOENT;
}

int keys_find_entry(const struct keys *k, const struct keys_group *g,
		    const char *extension, uint64_t *record)
{
	uint64_t lo = g->first, hi = lo + g->n;
	char have[FILES_NAME_MAX + 1];

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		const char *name = member_name(k->m, &k->m->at[k->entry[mid]]);
		int c = keys_extension(name, have, sizeof have);

		c = c < 0 ? 1 : strcmp(have, extension);
		if (c == 0) {
			*record = k->entry[mid];
			return 0;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -ENOENT;
}
