/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn an extent into bytes that stay put while pinned: the store's facade. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "extent/pinner.h"
#include "store/cache.h"
#include "store/shared/shared.h"

struct store;
struct store_options {
	uint64_t cache_size;       /* bytes */
	unsigned prefetch_threads; /* 0: no prefetching (ls, cat of one read) */
	struct handles *handles;   /* borrowed, outlives the store */
	struct shared *shared;     /* borrowed, the same; NULL: none */
	bool no_guesses;           /* threads only decode what a read needs */
};
int store_new(struct store **out, const struct store_options *o,
	      struct error *err);
/* Start the prefetch threads, and to share chunks; after the daemon has forked:
 * whoever inherits a mapping has the chunk in use. */
int store_start(struct store *s, struct error *err);
void store_free(struct store *s);

/* The extent's bytes.  CHUNK: from the cache, decoded by the one thread that
 * came first, or a descriptor when they are stored verbatim, or a fill. */
int store_pin(struct store *s, const struct extent *x, struct span *out,
	      struct error *err);
/* A thread is going to pin this extent, after others that make `ahead` bytes of
 * chunks: let another one decode it meanwhile, if it has to be.  False: not yet,
 * so much would not stay in the cache until then.  *bytes is what it makes. */
bool store_want(struct store *s, const struct extent *x, uint64_t ahead,
		uint64_t *bytes);
void store_unpin(struct store *s, struct span *span);
/* The same through the interface that lower layers know. */
struct pinner *store_pinner(struct store *s);
struct cache *store_cache(struct store *s);
struct handles *store_handles(struct store *s);
/* NULL: none. */
struct shared *store_shared(struct store *s);

/* Read and decode one chunk past the cache, for `verify`; *size is its decoded
 * bytes, *stored its stored ones.  `segment` locates it; NULL: as for a pin. */
int store_check_chunk(struct store *s, struct chunk_set *set, uint64_t index,
		      const struct buf *segment, uint64_t *size,
		      uint64_t *stored, struct error *err);

#endif
