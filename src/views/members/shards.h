/* SPDX-License-Identifier: BSD-2-Clause */
/* The view shards/ of members; included by shards*.c only. */
#ifndef VIEWS_MEMBERS_SHARDS_H
#define VIEWS_MEMBERS_SHARDS_H

#include "shards/names.h"
#include "views/members/beside.h"

struct beside_shard {
	uint64_t first, files; /* a range of the shards' members */
	uint64_t samples;
};
/* Immutable once it is made. */
struct beside_shards {
	struct files files; /* first member */
	struct beside *b;
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
	struct beside_shard *shard;
};
/* Return the bytes that the members of a shard take, with headers and padding. */
static inline uint64_t beside_shard_taken(const struct beside_shards *s,
					  const struct beside_shard *shard)
{
	return s->at[shard->first + shard->files] - s->at[shard->first];
}
/* Initialise s->set. */
void beside_shards_chunks(struct beside_shards *s);
/* Lay out the members.  Returns 0, an error of shards_layout_make, or -EOVERFLOW if
 * there would be more than SHARDS_MOST shards. */
int beside_shards_plan(struct beside_shards *s, struct error *err);

#endif
