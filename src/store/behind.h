/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks whose bytes were all handed out: kept for a while, then dropped. */
#ifndef STORE_BEHIND_H
#define STORE_BEHIND_H

#include <pthread.h>

#include "store/cache.h"

#define BEHIND_CHUNKS 512

struct behind_chunk {
	uint64_t set, index, bytes;
	size_t served; /* bytes of it that had been handed out when it was put on the list */
};
struct behind_list {
	uint64_t most, bytes; /* bytes of its chunks: the limit, and now */
	unsigned first, n;
	struct behind_chunk ring[BEHIND_CHUNKS];
};
struct behind {
	struct cache *cache;
	uint64_t least; /* bytes from which the cache has enough ghosts */
	/* Chunks are in memory that is not the cache's own, and cannot be retired; they
	 * are dropped. */
	_Atomic bool elsewhere;
	pthread_mutex_t lock;       /* protects the lists */
	struct behind_list forward; /* behind readers that go forward */
	struct behind_list others;
};
/* `cache` is borrowed; `budget` is its size. */
void behind_init(struct behind *b, struct cache *cache, uint64_t budget);
void behind_destroy(struct behind *b);
/* Put a chunk on the list of those to drop.  `served` bytes of it were handed out by now,
 * the last of them to a reader that goes forward or, if not `forward`, does not.  Drop
 * the oldest chunks that no longer fit on the list; those that were read meanwhile get
 * another turn, while there are places.  Thread-safe; never blocks on I/O. */
void behind_add(struct behind *b, uint64_t set, uint64_t index, uint64_t bytes,
		size_t served, bool forward);

#endif
