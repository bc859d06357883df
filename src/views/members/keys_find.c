/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches in the index of members by sample. */
#include <errno.h>
#include <string.h>

#include "base/bisect.h"
#include "views/members/keys.h"

static uint32_t group_record(const struct keys *k, uint64_t g)
{
	return k->entry[k->group[g].first];
}

/* Return the number of groups whose first record is below `record`. */
static uint64_t groups_below(const struct keys *k, uint64_t record)
{
	struct bisect b = bisect_in(0, k->n_groups);

	while (bisect_next(&b))
		bisect_answer(&b, group_record(k, b.mid) >= record);
	return b.lo;
}

static uint64_t dirs_below(const struct keys *k, uint64_t record)
{
	struct bisect b = bisect_in(0, k->n_dirs);

	while (bisect_next(&b))
		bisect_answer(&b, k->dir[b.mid] >= record);
	return b.lo;
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
	struct bisect b = bisect_in(0, k->n_moved);

	while (bisect_next(&b))
		bisect_answer(&b, k->moved[b.mid].dir >= dir);
	return b.lo < k->n_moved && k->moved[b.lo].dir == dir
		       ? &k->moved[b.lo].group
		       : NULL;
}

/* Compare a group's name with "NAME.", as far as the latter goes. */
static int compare_key(const struct keys *k, uint64_t group, const char *name,
		       size_t len)
{
	const char *member =
		member_name(k->m, &k->m->at[group_record(k, group)]);
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
	struct bisect b = bisect_in(s.first, s.first + s.n);
	size_t len = strlen(name);

	if (!len || strchr(name, '.'))
		return -ENOENT;
	while (bisect_next(&b))
		bisect_answer(&b, compare_key(k, b.mid, name, len) >= 0);
	if (b.lo == s.first + s.n || compare_key(k, b.lo, name, len))
		return -ENOENT;
	*group = b.lo;
	return 0;
}

/* Compare the extension of entry `i` with `extension`; one that is too long comes last. */
static int compare_extension(const struct keys *k, uint64_t i,
			     const char *extension)
{
	const char *name = member_name(k->m, &k->m->at[k->entry[i]]);
	char have[FILES_NAME_MAX + 1];

	return keys_extension(name, have, sizeof have) < 0
		       ? 1
		       : strcmp(have, extension);
}

int keys_find_entry(const struct keys *k, const struct keys_group *g,
		    const char *extension, uint64_t *record)
{
	const uint64_t end = (uint64_t)g->first + g->n;
	struct bisect b = bisect_in(g->first, end);

	while (bisect_next(&b))
		bisect_answer(&b, compare_extension(k, b.mid, extension) >= 0);
	if (b.lo == end || compare_extension(k, b.lo, extension))
		return -ENOENT;
	*record = k->entry[b.lo];
	return 0;
}
