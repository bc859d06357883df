/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of many extents in one buffer; what to have decoded meanwhile. */
#ifndef FS_GATHER_H
#define FS_GATHER_H

#include "store/store.h"

/* The chunks that other threads were asked to decode for the rest of a plan. */
struct ahead {
	unsigned asked;        /* the first extent that was not looked at */
	uint64_t bytes;        /* of chunks asked for and not yet pinned */
	uint64_t of[PLAN_MAX]; /* the part of `bytes` for each extent */
};
/* Call before extent `i` is pinned, for each i from 0 on: has the prefetch threads decode
 * the extents after it. */
void want_ahead(struct store *s, const struct plan *plan, unsigned i,
		struct ahead *a);
/* Return how many decoded bytes one read may hold pinned: a share of the cache. */
uint64_t gather_pin_budget(struct store *s);

/* Copying bytes together, run by run; see gather.c. */
#define GATHER_SLOTS 128
#define GATHER_WINDOW 4096
#define GATHER_FILES 16
struct gather_slot {
	uint64_t set, index; /* the key: chunk set and chunk, or file and MiB */
	bool used;
	struct span span; /* pinned */
	uint64_t origin;  /* SPAN_FD: position of skip 0 in the file */
	uint64_t
		win_pos; /* SPAN_FD: position in the file of the window's bytes */
	size_t win_len;
};
struct gather {
	struct store *store;
	uint64_t pin_budget; /* decoded bytes that may be held pinned */
	unsigned char *to;   /* where the next byte goes */
	size_t left;         /* room */
	uint64_t across;     /* bytes copied of each row of the strips */
	uint64_t pinned;     /* decoded bytes held in slots */
	unsigned files;      /* descriptors held in slots */
	unsigned hand; /* the next slot to release when too much is held */
	unsigned char *windows; /* GATHER_SLOTS of GATHER_WINDOW, or NULL */
	struct gather_slot slot[GATHER_SLOTS];
};
/* Prepare to copy `len` bytes to `to`.  `pin_budget` is gather_pin_budget, or the part of
 * it that the caller may still use. */
void gather_init(struct gather *g, struct store *s, uint64_t pin_budget,
		 void *to, size_t len);
/* Append the bytes of a pinned span. */
int gather_span(struct gather *g, const struct span *s, struct error *err);
/* Append the bytes of an extent.  May block, as store_pin does. */
int gather_extent(struct gather *g, const struct extent *x, struct error *err);
/* Release all pins, and check that the files that were read have not changed: -ESTALE. */
int gather_finish(struct gather *g, struct error *err);

#endif
