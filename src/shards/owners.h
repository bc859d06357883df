/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups, asked for once. */
#ifndef SHARDS_OWNERS_H
#define SHARDS_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

/* Names; one that came later replaces one of the same place.  One thread at a time;
 * zeros before. */
enum { OWNERS = 256, OWNER_NAME_MOST = 256 };
struct owner_name {
	uint32_t id;
	bool known;
	char name[OWNER_NAME_MOST]; /* "": it has none */
};
struct owners {
	struct owner_name users[OWNERS], groups[OWNERS];
};
/* NULL: it has none.  Valid until the next call.  May block on the user database. */
const char *owners_user(struct owners *o, uint32_t uid);
const char *owners_group(struct owners *o, uint32_t gid);

#endif
