/* SPDX-License-Identifier: BSD-2-Clause */
/* Detect readers that go forward, and decode ahead of them. */
#ifndef STORE_PREFETCH_H
#define STORE_PREFETCH_H

#include "extent/chunk.h"

struct prefetch;
/* Bring one chunk into the cache (or tell the kernel to read it).  Called on a pool
 * thread without any lock.  Errors are dropped: the reader will meet them itself. */
typedef void prefetch_load_fn(void *ctx, struct chunk_set *set, uint64_t index);
/* Return true if nothing is to be done for this chunk. */
typedef bool prefetch_has_fn(void *ctx, struct chunk_set *set, uint64_t index);

/* Start `threads` threads that decode up to `window` bytes of chunks ahead of readers.
 * Where chunks are so large that fewer than one a thread fit in the window, it is one a
 * thread, as long as they are within `most` bytes.  With a window of 0 only chunks given
 * to prefetch_want are decoded.  Return 0, or -errno with a sentence. */
int prefetch_new(struct prefetch **out, unsigned threads, uint64_t window,
		 uint64_t most, prefetch_load_fn *load, prefetch_has_fn *has,
		 void *ctx, struct error *err);
/* Note that a reader wants this chunk.  Cheap; never blocks on I/O. Return true if the
 * reader goes forward, chunk after chunk. */
bool prefetch_note(struct prefetch *p, struct chunk_set *set, uint64_t index);
/* Begin to decode a chunk of `bytes` decoded bytes that a reader is about to want.
 * `sure` says that the reader has asked for it; otherwise the chunk is left alone once a
 * reader has passed it.  Return false if too much was begun already; the caller should
 * then decode the chunk itself. */
bool prefetch_want(struct prefetch *p, struct chunk_set *set, uint64_t index,
		   uint64_t bytes, bool sure);
/* Finish the queued jobs and free all; `p` may be NULL. */
void prefetch_free(struct prefetch *p);

#endif
