/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of which all was handed out: kept for a while, then dropped. */
#ifndef STORE_BEHIND_H
#define STORE_BEHIND_H

#include <pthread.h>

#include "store/cache.h"

#define BEHIND_CHUNKS 512

struct behind_chunk {
	uint64_t set, index, bytes;
	size_t served; /* bytes of it that were handed out when it was put there */
};
struct behind_list {
	uint64_t most, bytes; /* of its chunks: at most, now */
	unsigned first, n;
	struct behind_chunk ring[BEHIND_CHUNKS];
};
struct behind {
	struct cache *cache;
	uint64_t least; /* bytes of a chunk that the cache would know again */
	/* Chunks are in memory that is not the cache's own, and cannot be retired. */
	_Atomic bool elsewhere;
	pthread_mutex_t lock;       /* protects the lists */
	struct behind_list forward; /* behind readers that go forward */
	struct behind_list others;
};
/* `cache` is borrowed; `budget` is its size. */
void behind_init(struct behind *b, struct cache *cache, uint64_t budget);
void behind_destroy(struct behind *b);
/* Put a chunk on the list of those to drop, of which so many bytes were handed out by
 * now, the last of them to a reader that goes `forward` or not, and drop the oldest of
 * them that do not fit there any longer; those that were asked for meanwhile get
 * another turn, while there are places. */
void behind_add(struct behind *b, uint64_t set, uint64_t index, uint64_t bytes,
		size_t served, bool forward);

#endif
