/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference-counted bytes, recycled so that a steady state never faults. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A buffer is written by the one who made it and immutable once it is shared.
 * Memory comes from mmap in pages when it is large (so freeing it really gives
 * it back) and is kept for reuse on a bounded free list (buf_reuse_limit).
 * `gauge`, when set, holds the bytes alive: added at buf_new, subtracted when
 * the last reference goes.
 */
struct buf {
	unsigned char *data;
	size_t size;             /* bytes that mean something */
	size_t capacity;         /* bytes allocated, what `gauge` counts */
	_Atomic uint64_t *gauge; /* borrowed, may be NULL */
	_Atomic unsigned refs;
	size_t useful; /* bytes that readers can be given; `size` unless its maker sets it */
	_Atomic size_t
		served; /* bytes handed out to readers, counted by the store */
};

/* A buffer of `size` bytes, contents undefined, one reference; NULL when
 * memory is out.  Never blocks on I/O. */
struct buf *buf_new(size_t size, _Atomic uint64_t *gauge);
/* Bytes that are somewhere else: `release` gives up all `capacity` of them with
 * the last reference.  NULL: memory is out, and they are still the caller's. */
struct buf *buf_around(void *data, size_t size, size_t capacity,
		       _Atomic uint64_t *gauge,
		       void (*release)(void *ctx, void *data, size_t capacity),
		       void *ctx);
struct buf *buf_ref(struct buf *b);
/* Drops one reference; `b` may be NULL. */
void buf_unref(struct buf *b);
/* What buf_new(size) will add to a gauge. */
size_t buf_cost(size_t size);
/* Bytes that are in no buffer, and count in the budget of caches. */
extern _Atomic uint64_t buf_beside;
/* Set by whoever can do without some of these, NULL at first: give up about so many
 * bytes, those that are wanted least. */
typedef void buf_beside_fn(uint64_t bytes);
extern buf_beside_fn *_Atomic buf_beside_less;
/* Bytes kept for reuse at most (default 8 MiB), counted in no gauge. */
void buf_reuse_limit(size_t bytes);
/* Where a buffer is more than half of that, two like it are kept, of so many bytes
 * together at most (default: none).  What is more than 8 MiB counts in buf_beside. */
void buf_reuse_large(size_t bytes);
/* Give every kept buffer back to the system. */
void buf_trim(void);

#endif
