/* SPDX-License-Identifier: BSD-2-Clause */
/* Notice readers that go forward, and decode ahead of them. */
#ifndef STORE_PREFETCH_H
#define STORE_PREFETCH_H

#include "extent/chunk.h"

struct prefetch;
/* Bring one chunk into the cache (or tell the kernel to read it); called on a
 * pool thread without any lock.  Errors are nobody's: the reader meets them. */
typedef void prefetch_load_fn(void *ctx, struct chunk_set *set, uint64_t index);
/* Is there nothing to do for this chunk? */
typedef bool prefetch_has_fn(void *ctx, struct chunk_set *set, uint64_t index);

/* `window` bytes of decoded chunks ahead, on `threads` threads, which are
 * started at once.  Where chunks are so large that fewer than one a thread fit
 * in the window, one a thread as long as they are within `most` bytes.  A window of
 * 0: nothing but what is wanted (prefetch_want). */
int prefetch_new(struct prefetch **out, unsigned threads, uint64_t window,
		 uint64_t most, prefetch_load_fn *load, prefetch_has_fn *has,
		 void *ctx, struct error *err);
/* A reader wants this chunk.  Cheap; never blocks on I/O.  True when the reader
 * is going forward, chunk after chunk. */
bool prefetch_note(struct prefetch *p, struct chunk_set *set, uint64_t index);
/* A reader is about to want this chunk of `bytes` decoded bytes: begin now.  `sure`: it has
 * asked already; otherwise the chunk is left alone once a reader has passed it.  Return false
 * if too much was begun already, and the caller had better decode the chunk itself. */
bool prefetch_want(struct prefetch *p, struct chunk_set *set, uint64_t index,
		   uint64_t bytes, bool sure);
/* Finishes what is queued; `p` may be NULL. */
void prefetch_free(struct prefetch *p);

#endif
