/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks within a byte budget; one load per key, pinned by reference. */
#ifndef STORE_CACHE_H
#define STORE_CACHE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct cache;
/* Make the bytes of a missing entry.  Called without any lock.  The buffer it
 * makes counts in `gauge`, or else not in the budget: it is memory of somebody
 * else, and is kept however large. */
typedef int cache_load_fn(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
			  struct error *err);

int cache_new(struct cache **out, uint64_t budget, struct error *err);
void cache_free(struct cache *c);

/* The entry if it is there and ready, with a reference; else NULL. Counts as a
 * use. Never blocks beyond a short lock. */
struct buf *cache_peek(struct cache *c, uint64_t set, uint64_t index);
/* The entry, loaded by exactly one of the callers that want it at once; the
 * others wait on that entry only and share the error.  `expect` is the cost of
 * the result, `scratch` what the load needs beside it: both are made room for
 * before loading, and loads whose sum exceeds a share of the budget take turns
 * (one always runs, so nothing can deadlock).  A failure is not kept.  *out
 * holds a reference: buf_unref when done. */
int cache_get(struct cache *c, uint64_t set, uint64_t index, uint64_t expect,
	      uint64_t scratch, cache_load_fn *load, void *ctx,
	      struct buf **out, struct error *err);
/* Is it there or being loaded?  For prefetching. */
bool cache_has(struct cache *c, uint64_t set, uint64_t index);

/* It was loaded for somebody who is yet to come, and was not used so far. */
void cache_expect(struct cache *c, uint64_t set, uint64_t index);

/* Forget an entry that is ready; who holds its buffer keeps it.  For bytes that
 * will not be wanted again. */
void cache_drop(struct cache *c, uint64_t set, uint64_t index);
/* The same, unless more bytes of it were handed out than `*served`, which is then how
 * many: somebody is still reading it.  True: there is nothing more to do, for it is gone,
 * or another buffer is there, of which fewer were. */
bool cache_drop_idle(struct cache *c, uint64_t set, uint64_t index,
		     size_t *served);
/* The same for bytes that may be wanted again, and not while anybody holds them: when
 * they are, the cache knows it, and they stay.  What has come back before, or is memory
 * of somebody else, stays now, and there is nothing more to do. */
bool cache_retire(struct cache *c, uint64_t set, uint64_t index,
		  size_t *served);
/* Of smaller entries more can be retired than the cache would know again. */
uint64_t cache_known(const struct cache *c);

/* A moment, for cache_shed. */
uint64_t cache_mark(struct cache *c);
/* Forget entries that do not count in the budget, are held by no reader, and were
 * not used since `mark` (UINT64_MAX: whenever); about `most` of them, the first to
 * go. */
void cache_shed(struct cache *c, uint64_t mark, uint64_t most);

/* Would an entry of `size` push others out?  A moment's picture; takes no lock. */
bool cache_is_full(const struct cache *c, uint64_t size);
struct cache_usage {
	uint64_t budget, bytes, entries, evictions, hits, misses;
};
void cache_usage(struct cache *c, struct cache_usage *out);
/* Consistency of every list and sum; aborts on a defect.  For tests. */
void cache_verify(struct cache *c);

#endif
