/* SPDX-License-Identifier: BSD-2-Clause */
/* The view shards/ of members; included by shards*.c only. */
#ifndef VIEWS_MEMBERS_SHARDS_H
#define VIEWS_MEMBERS_SHARDS_H

#include "shards/names.h"
#include "views/members/member_views.h"

struct member_view_shard {
	uint64_t first, files; /* a range of the shards' members */
	uint64_t samples;
};
/* Immutable once it is made. */
struct member_view_shards {
	struct files files; /* first member */
	struct member_views *b;
	/* Chunk i < n is the header of member i, if it is more than a block; chunk n
	 * the index. */
	struct chunk_set set;
	/* Code 0, or the reason why there are no shards. */
	struct error why;
	char name[SHARDS_NAME_MOST + 1];
	uint64_t n;       /* number of members of all shards */
	uint32_t *record; /* the record of each member, in order */
	/* Bytes that the members before it take; n + 1 numbers. */
	uint64_t *at;
	uint64_t n_shards;
	struct member_view_shard *shard;
};
/* Return the bytes that the members of a shard take, with headers and padding. */
static inline uint64_t
member_view_shard_taken(const struct member_view_shards *s,
			const struct member_view_shard *shard)
{
	return s->at[shard->first + shard->files] - s->at[shard->first];
}
/* Initialise s->set. */
void member_view_shards_chunks(struct member_view_shards *s);
/* Lay out the members.  Returns 0, an error of shards_layout_make, or -EOVERFLOW if
 * there would be more than SHARDS_MOST shards. */
int member_view_shards_plan(struct member_view_shards *s, struct error *err);

#endif
