/* SPDX-License-Identifier: BSD-2-Clause */
/* Room shared by several processes that stage: each announces what it still has to
 * write. */

/*
 * Two processes that look at the free space at the same time, and then write for ten
 * minutes, would need twice the space that there is.  So each locks the place, looks at
 * the free space and at what the others have announced, announces in its lock file how
 * many bytes it will write, and unlocks the place.  While it writes, it updates how many
 * of them are left.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "staging/private.h"

int staging_ask(struct staging *s, struct staging_build *b, const char *in,
		struct staging_others *out, struct error *err)
{
	struct instances all;
	char file[PLACE_FILE];
	int r;

	*out = (struct staging_others){0};
	b->lock = place_lock(s, err);
	if (b->lock < 0)
		return b->lock;
	r = place_scan(s, &all, err);
	for (size_t i = 0; r == 0 && i < all.list.n; i++) {
		const char *id = all.list.at[i].id;
		struct announced a;

		place_file(file, id, "json");
		if (faccessat(s->control.fd, file, F_OK, 0) == 0 ||
		    !strcmp(id, b->id))
			continue;
		place_file(file, id, "use");
		if (!shm_is_locked(&s->control, file))
			continue;
		record_announced(s, id, &a);
		out->bytes += a.left;
		if (a.group && *in && system_group_is_in(a.group, in))
			out->group += a.left;
		announced_free(&a);
	}
	instances_free(&all);
	if (r < 0)
		place_unlock(&b->lock);
	return r;
}

void staging_promise(struct staging_build *b, uint64_t bytes)
{
	record_announce_left(b->use, bytes);
	place_unlock(&b->lock);
}

void staging_promise_left(const struct staging_build *b, uint64_t left)
{
	record_announce_left(b->use, left);
}
