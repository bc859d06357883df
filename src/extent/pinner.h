/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface through which lower layers pin bytes in the cache. */
#ifndef EXTENT_PINNER_H
#define EXTENT_PINNER_H

#include "extent/plan.h"

/* Bytes that stay put while pinned. */
struct span {
	enum { SPAN_MEM, SPAN_FD, SPAN_FILL } kind;
	size_t len;
	const unsigned char *mem; /* SPAN_MEM */
	uint64_t pos;             /* SPAN_FD: offset in handle.fd, in bytes */
	struct fill fill;         /* SPAN_FILL */
	uint32_t phase;
	/* SPAN_MEM: a reference that the span holds, or NULL. */
	struct buf *buf;
	struct handle handle; /* SPAN_FD */
	/* With SPAN_MEM: the chunk that the bytes are in, or NULL, and whether its
	 * reader goes forward.  `given` is the number of bytes that the caller hands
	 * out before it unpins: `len`, unless the caller sets another number. */
	const struct chunk_set *set;
	uint64_t index;
	size_t given;
	bool forward;
};

/* The store as lower layers (tensor, tree) see it, which need it only for the attributes
 * of generated texts and of stored chunks.  Functions return 0 or -errno; `pin` may
 * block on I/O. */
struct pinner {
	int (*pin)(struct pinner *p, const struct extent *x, struct span *out,
		   struct error *err);
	void (*unpin)(struct pinner *p, struct span *span);
	/* Describe in *out where a chunk of a set is; may block on I/O. */
	int (*locate)(struct pinner *p, struct chunk_set *set, uint64_t index,
		      struct chunk *out, struct error *err);
};

#endif
