/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference-counted bytes, recycled so that a steady state never faults. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A buffer is written by its maker and immutable once it is shared.  A large one has
 * pages of its own from mmap, so freeing it really gives the memory back; freed buffers
 * are kept for reuse on a bounded free list (buf_reuse_limit).  `gauge`, if not NULL,
 * counts the bytes that are alive: buf_new adds the buffer's capacity, and dropping the
 * last reference subtracts it.
 */
struct buf {
	unsigned char *data;
	size_t size;             /* bytes in use */
	size_t capacity;         /* bytes allocated, which `gauge` counts */
	_Atomic uint64_t *gauge; /* borrowed, may be NULL */
	_Atomic unsigned refs;
	size_t useful; /* bytes that readers can be given; `size` unless set */
	_Atomic size_t
		served; /* bytes handed out to readers, counted by the store */
};

/* Return a buffer of `size` bytes, contents undefined, with one reference, or NULL if
 * memory is out.  Never blocks on I/O. */
struct buf *buf_new(size_t size, _Atomic uint64_t *gauge);
/* Return a buffer around bytes that are somewhere else.  Dropping the last reference
 * calls `release` with all `capacity` bytes.  Return NULL if memory is out; the bytes are
 * then still the caller's. */
struct buf *buf_around(void *data, size_t size, size_t capacity,
		       _Atomic uint64_t *gauge,
		       void (*release)(void *ctx, void *data, size_t capacity),
		       void *ctx);
struct buf *buf_ref(struct buf *b);
/* Drop one reference; `b` may be NULL. */
void buf_unref(struct buf *b);
/* The bytes that buf_new(size) will add to a gauge. */
size_t buf_cost(size_t size);
/* Bytes outside of all buffers that count in the budget of caches. */
extern _Atomic uint64_t buf_extra_bytes;
/* The function that frees about `bytes` of those, the least wanted first; NULL until the
 * module that has such bytes sets it. */
typedef void buf_extra_shrink_fn(uint64_t bytes);
extern buf_extra_shrink_fn *_Atomic buf_extra_shrink;
/* Keep at most `bytes` bytes of freed buffers for reuse (default 8 MiB).  No gauge counts
 * them. */
void buf_reuse_limit(size_t bytes);
/* Where a freed buffer is more than half of that limit, keep two like it, together at
 * most `bytes` bytes (default 0: do not).  Kept bytes beyond 8 MiB count in
 * buf_extra_bytes. */
void buf_reuse_large(size_t bytes);
/* Free every kept buffer. */
void buf_trim(void);

#endif
