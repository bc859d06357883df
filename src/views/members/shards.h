/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the view shards/ of members share; nobody else includes it. */
#ifndef VIEWS_MEMBERS_SHARDS_H
#define VIEWS_MEMBERS_SHARDS_H

#include "shards/names.h"
#include "views/members/beside.h"

struct beside_shard {
	uint64_t first, files; /* members */
	uint64_t samples;
};
/* Never changed once it is made. */
struct beside_shards {
	struct files files; /* first member */
	struct beside *b;
	struct chunk_set set; /* of member i the header, if it is more than a
				 block; n: the index */
	struct error why;     /* code 0; else why there are no shards */
	char name[SHARDS_NAME_MOST + 1];
	uint64_t n;       /* members of shards */
	uint32_t *record; /* of each, in order */
	uint64_t *at;     /* bytes that those before it take; n + 1 */
	uint64_t n_shards;
	struct beside_shard *shard;
};
/* Bytes that its members take. */
static inline uint64_t beside_shard_taken(const struct beside_shards *s,
					  const struct beside_shard *shard)
{
	return s->at[shard->first + shard->files] - s->at[shard->first];
}
/* s->set becomes that. */
void beside_shards_chunks(struct beside_shards *s);
/* Which members are where.  As shards_layout_make; -EOVERFLOW: more than SHARDS_MOST. */
int beside_shards_plan(struct beside_shards *s, struct error *err);

#endif
