/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups, each looked up once. */
#include "shards/owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ANSWER_MOST ((size_t)16 << 20)

/* Set *name to the name of an id, stored in `buf`, or to NULL.  Returns 0 or an errno;
 * ERANGE if `buf` is too small. */
static int owners_query(uint32_t id, bool group, char *buf, size_t n,
			const char **name)
{
	struct passwd p, *user = NULL;
	struct group g, *found = NULL;
	int r = group ? getgrgid_r(id, &g, buf, n, &found)
		      : getpwuid_r(id, &p, buf, n, &user);

	*name = r ? NULL : found ? found->gr_name : user ? user->pw_name : NULL;
	return r;
}

/* Look up the name of an id, or "".  Groups come with all of their members, of which
 * there may be thousands, so the buffer grows. */
static void owners_look_up(uint32_t id, bool group, char name[OWNER_NAME_MOST])
{
	const char *found = NULL;
	int r = ERANGE;

	name[0] = '\0';
	for (size_t n = 4096; r == ERANGE && n <= ANSWER_MOST; n *= 4) {
		cleanup_free char *buf = malloc(n);

		if (!buf)
			return;
		r = owners_query(id, group, buf, n, &found);
		if (found && strlen(found) < OWNER_NAME_MOST)
			strcpy(name, found);
	}
}

static const char *owners_name(struct owner_name *table, uint32_t id,
			       bool group)
{
	struct owner_name *at = &table[id % OWNERS];

	if (!at->known || at->id != id) {
		at->known = true;
		at->id = id;
		owners_look_up(id, group, at->name);
	}
	return at->name[0] ? at->name : NULL;
}

const char *owners_user(struct owners *o, uint32_t uid)
{
	return owners_name(o->users, uid, false);
}

const char *owners_group(struct owners *o, uint32_t gid)
{
	return owners_name(o->groups, gid, true);
}
