/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks within a byte budget; one load per key, pinned by reference. */
#ifndef STORE_CACHE_H
#define STORE_CACHE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct cache;
/* Make the bytes of a missing entry; called without any lock.  *out gets a buffer with
 * one reference.  A buffer that counts in `gauge` then counts in the budget.  Any other
 * buffer is memory that is not the cache's own: it does not count, and is kept however
 * large it is.  Return 0, or -errno with a sentence. */
typedef int cache_load_fn(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
			  struct error *err);

/* Make a cache of `budget` bytes.  Return 0, or -ENOMEM with a sentence. */
int cache_new(struct cache **out, uint64_t budget, struct error *err);
/* Free it; `c` may be NULL.  No load may be running; buffers that readers hold must not
 * outlive it, because they count in its gauge. */
void cache_free(struct cache *c);

/* Return the entry's buffer, with a reference for the caller, if it is ready; else NULL.
 * Counts as a use.  Never blocks beyond a short lock. */
struct buf *cache_peek(struct cache *c, uint64_t set, uint64_t index);
/*
 * Get an entry.  It is loaded by exactly one of the threads that want it at once; the
 * others wait for that entry only and share the error.  `expect` is the cost of the
 * result in bytes (buf_cost), `scratch` the bytes that the load needs in addition.  Room
 * for both is made before loading, and loads whose sum exceeds a share of the budget take
 * turns (one always runs, so there is no deadlock).  A failure is not kept.  *out has a
 * reference: call buf_unref when done.  Return 0, or the load's -errno with its sentence.
 */
int cache_get(struct cache *c, uint64_t set, uint64_t index, uint64_t expect,
	      uint64_t scratch, cache_load_fn *load, void *ctx,
	      struct buf **out, struct error *err);
/* Return true if the entry is there or being loaded.  For prefetching. */
bool cache_has(struct cache *c, uint64_t set, uint64_t index);

/* Mark an entry as loaded ahead of its reader: its first use is yet to come. */
void cache_expect(struct cache *c, uint64_t set, uint64_t index);

/* Drop a ready entry whose bytes will not be needed again.  Readers that hold its buffer
 * keep it. */
void cache_drop(struct cache *c, uint64_t set, uint64_t index);
/* As cache_drop, unless more bytes of the entry were handed out than *served: it is still
 * being read.  Then set *served to their number and return false.  Return true if there
 * is nothing more to do: the entry is gone, or was loaded again since and fewer bytes of
 * it were handed out. */
bool cache_drop_idle(struct cache *c, uint64_t set, uint64_t index,
		     size_t *served);
/* As cache_drop_idle, but drop only an entry whose buffer no reader holds, and leave a
 * ghost, so that a reload is recognised and the entry then kept.  An entry that is proven
 * (policy.c), or was read twice, or whose memory is not the cache's own, is not dropped;
 * that returns true, too.  Return false also if a reader holds the buffer. */
bool cache_retire(struct cache *c, uint64_t set, uint64_t index,
		  size_t *served);
/* The size in bytes from which the cache has enough ghosts: more of the smaller entries
 * can be retired than it would recognise. */
uint64_t cache_ghosts_from(const struct cache *c);

/* The present moment, for cache_drop_unused. */
uint64_t cache_mark(struct cache *c);
/* Drop about `most` entries that do not count in the budget, that no reader holds, and
 * that were not used since `mark` (UINT64_MAX: whenever they were used); the first to be
 * evicted go first. */
void cache_drop_unused(struct cache *c, uint64_t mark, uint64_t most);

/* Return true if an entry of `size` bytes would evict others.  A snapshot; takes no
 * lock. */
bool cache_is_full(const struct cache *c, uint64_t size);
struct cache_usage {
	uint64_t budget, bytes, entries, evictions, hits, misses;
};
void cache_usage(struct cache *c, struct cache_usage *out);
/* Check every list and sum, and abort on a defect.  For tests. */
void cache_verify(struct cache *c);

#endif
