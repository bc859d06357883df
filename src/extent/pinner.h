/* SPDX-License-Identifier: BSD-2-Clause */
/* How lower layers ask whoever holds the cache to make bytes stand still. */
#ifndef EXTENT_PINNER_H
#define EXTENT_PINNER_H

#include "extent/plan.h"

/* Bytes that stay put while pinned. */
struct span {
	enum { SPAN_MEM, SPAN_FD, SPAN_FILL } kind;
	size_t len;
	const unsigned char *mem; /* SPAN_MEM */
	uint64_t pos;             /* SPAN_FD: offset in handle.fd */
	struct fill fill;         /* SPAN_FILL */
	uint32_t phase;
	struct buf *buf;      /* SPAN_MEM: the reference held, or NULL */
	struct handle handle; /* SPAN_FD */
	/* SPAN_MEM has the chunk that the bytes are in, or NULL, and whether its reader goes
	 * forward.  `given` is the number of its bytes that the caller hands out before
	 * it unpins: `len`, unless the caller sets another number. */
	const struct chunk_set *set;
	uint64_t index;
	size_t given;
	bool forward;
};

/* The store, seen from below (tensor, tree): only what attributes of generated
 * texts and of stored chunks need.  `pin` may block on I/O. */
struct pinner {
	int (*pin)(struct pinner *p, const struct extent *x, struct span *out,
		   struct error *err);
	void (*unpin)(struct pinner *p, struct span *span);
	/* Where a chunk of a set is; may block on I/O. */
	int (*locate)(struct pinner *p, struct chunk_set *set, uint64_t index,
		      struct chunk *out, struct error *err);
};

#endif
