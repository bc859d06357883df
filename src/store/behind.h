/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of which all was handed out: kept for a while, then dropped. */
#ifndef STORE_BEHIND_H
#define STORE_BEHIND_H

#include <pthread.h>

#include "store/cache.h"

#define BEHIND_CHUNKS 512

struct behind_chunk {
	uint64_t set, index, bytes;
	size_t served; /* bytes of it that were handed out by then */
	bool forward;
};
struct behind {
	struct cache *cache;
	uint64_t most;  /* bytes that are kept for those who lag */
	uint64_t least; /* smaller chunks are dropped behind `forward` only */
	pthread_mutex_t lock; /* protects the ring */
	unsigned first, n;
	uint64_t bytes;
	struct behind_chunk ring[BEHIND_CHUNKS];
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
