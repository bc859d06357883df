/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks that a forward reader is through with: kept for a while, then dropped. */
#ifndef STORE_BEHIND_H
#define STORE_BEHIND_H

#include <pthread.h>

#include "extent/plan.h"
#include "store/cache.h"

#define BEHIND_CHUNKS 512

struct behind_chunk {
	uint64_t set, index, bytes;
	size_t served; /* bytes of it that were handed out by then */
};
struct behind {
	struct cache *cache;
	uint64_t most;        /* bytes that are kept for those who lag */
	pthread_mutex_t lock; /* protects the ring */
	unsigned first, n;
	uint64_t bytes;
	struct behind_chunk ring[BEHIND_CHUNKS];
};
/* `cache` is borrowed; `budget` is its size. */
void behind_init(struct behind *b, struct cache *cache, uint64_t budget);
void behind_destroy(struct behind *b);
/* This extent of a chunk of `size` bytes was handed out to a forward reader, and so many
 * bytes of it by now.  If that was the last that he wants: put it on the list of those to
 * drop, and drop the oldest of them that do not fit there any longer; those that were asked
 * for meanwhile get another turn, while there are places. */
void behind_note(struct behind *b, const struct extent *x, size_t size,
		 size_t served);

#endif
