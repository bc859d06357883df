/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn extents into bytes that stay in place while they are pinned: the store's
 * facade. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "extent/pinner.h"
#include "store/cache.h"
#include "store/shared/shared.h"

struct store;
struct store_options {
	uint64_t cache_size;       /* in bytes */
	unsigned prefetch_threads; /* 0: no prefetching (as for ls and cat) */
	struct handles *handles;   /* borrowed, outlives the store */
	struct shared
		*shared; /* borrowed, outlives the store; NULL: not shared */
	bool no_guesses; /* threads decode only what a read needs */
};
/* Make a store; no thread is started yet.  Return 0, or -errno with a sentence. */
int store_new(struct store **out, const struct store_options *o,
	      struct error *err);
/* Start the prefetch threads and the sharing of chunks.  Call it after the daemon has
 * forked: a child that inherits a mapping would keep the chunk in use.  Return 0, or
 * -errno with a sentence. */
int store_start(struct store *s, struct error *err);
/* End its threads and free it; `s` may be NULL.  All spans must be unpinned before. */
void store_free(struct store *s);

/* Pin the bytes of an extent until store_unpin.  Bytes of a chunk come from the cache,
 * decoded by the one thread that came first; or they are a range of a descriptor if they
 * are stored verbatim, or a fill.  May block on I/O and decoding.  Return 0, or -errno
 * with a sentence. */
int store_pin(struct store *s, const struct extent *x, struct span *out,
	      struct error *err);
/* Announce that this thread is going to pin an extent, after others whose chunks take
 * `ahead` bytes: another thread then decodes it meanwhile, if necessary.  *bytes is set
 * to the number of bytes that will be decoded.  Return false if decoding was not begun,
 * because the chunk would be evicted before it is pinned. */
bool store_want(struct store *s, const struct extent *x, uint64_t ahead,
		uint64_t *bytes);
/* Give up what store_pin pinned. */
void store_unpin(struct store *s, struct span *span);
/* The store through the interface that lower layers know; the store owns it. */
struct pinner *store_pinner(struct store *s);
struct cache *store_cache(struct store *s);
struct handles *store_handles(struct store *s);
/* NULL: chunks are not shared. */
struct shared *store_shared(struct store *s);

/* Read and decode one chunk past the cache, for `verify`.  *size is set to its decoded
 * bytes, *stored to its stored ones.  `segment` is the page of the chunk index that
 * locates it; NULL: it is found as for a pin. */
int store_check_chunk(struct store *s, struct chunk_set *set, uint64_t index,
		      const struct buf *segment, uint64_t *size,
		      uint64_t *stored, struct error *err);

#endif
