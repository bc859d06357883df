/* SPDX-License-Identifier: BSD-2-Clause */
/* The options shards=, shard-size= and shard-count=: how the view shards/ is cut. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/system.h"
#include "cli/option_rows.h"
#include "shards/cut.h"

#define SIZE "size="
#define COUNT "count="

/* Cut members as tensors are cut, and check the rule. */
static int settle_shards_cut(struct settings *s, struct error *err)
{
	s->member_views.shards = s->views.shards;
	return shards_cut_check(&s->views.shards, err);
}

/* Parse "4", "size=1G" or "count=1000"; the latter two are what the other two options
 * set. */
int option_set_shards(struct settings *s, const char *value, struct error *err)
{
	struct shards_cut *cut = &s->views.shards;
	int r;

	if (!strncmp(value, SIZE, strlen(SIZE)))
		return option_set_shard_size(s, value + strlen(SIZE), err);
	if (!strncmp(value, COUNT, strlen(COUNT)))
		return option_set_shard_count(s, value + strlen(COUNT), err);
	r = parse_count(value, 1, UINT64_MAX, &cut->shards, err);
	return r < 0 ? r : settle_shards_cut(s, err);
}

int option_set_shard_size(struct settings *s, const char *value,
			  struct error *err)
{
	struct shards_cut *cut = &s->views.shards;
	int r = parse_size(value, system_memory(), &cut->size, err);

	if (r == 0 && !cut->size)
		return error_set(err, -EINVAL, "a shard cannot have 0 bytes");
	return r < 0 ? r : settle_shards_cut(s, err);
}

int option_set_shard_count(struct settings *s, const char *value,
			   struct error *err)
{
	struct shards_cut *cut = &s->views.shards;
	int r = parse_count(value, 1, UINT64_MAX, &cut->count, err);

	return r < 0 ? r : settle_shards_cut(s, err);
}
