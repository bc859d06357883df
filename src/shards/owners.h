/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups, each looked up once. */
#ifndef SHARDS_OWNERS_H
#define SHARDS_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

/* A cache of names; a new name replaces one with the same id modulo OWNERS.  Used by
 * one thread at a time; zeros make an empty cache. */
enum { OWNERS = 256, OWNER_NAME_MOST = 256 };
struct owner_name {
	uint32_t id;
	bool known;
	char name[OWNER_NAME_MOST]; /* "" if the id has no name */
};
struct owners {
	struct owner_name users[OWNERS], groups[OWNERS];
};
/* Return the name of a user or group, valid until the next call; NULL if it has none.
 * May block on the user database. */
const char *owners_user(struct owners *o, uint32_t uid);
const char *owners_group(struct owners *o, uint32_t gid);

#endif
