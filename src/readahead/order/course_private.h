/* SPDX-License-Identifier: BSD-2-Clause */
/* What the window (course.c), the search and the steps (course_*.c) share. */
#ifndef READAHEAD_ORDER_COURSE_PRIVATE_H
#define READAHEAD_ORDER_COURSE_PRIVATE_H

#include <stddef.h>

#include "base/number.h"
#include "readahead/order/course.h"
#include "readahead/order/spot.h"

/* Positions made ready at once, besides those being read: readers show once a mark. */
#define COURSE_LEAD (4 * COURSE_MARK)

/* SENT: on its way to the kernel, or there. */
enum slot_state { SLOT_WAITS, SLOT_READY, SLOT_LEFT, SLOT_SENT };
/* A position of the window.  Links are numbers of slots + 1; 0: none. */
struct slot {
	uint64_t key, size;
	void *kept;
	uint32_t sample;
	uint32_t next_key, next_sample;
	uint32_t sent; /* its number of those that were */
	uint8_t state; /* enum slot_state */
	bool seen;
};
/* Slots of a hash value, the first position first. */
struct chain {
	uint32_t first, last;
};

#define COURSE_LATEST 5
#define COURSE_AT_HAND 8
#define COURSE_PATIENCE 32
struct course {
	struct order order;
	const struct course_ops *ops;
	void *ctx;
	/* That the window may have: as the caller says; after losses; in spite of any. */
	uint64_t bytes, believed, least;
	uint64_t slack; /* positions between those who read */
	/* Orders of two epochs; or the first one is that of every epoch. */
	uint32_t *at[2];
	bool made[2];
	unsigned now;   /* at[now]: the epoch that begins at position `base` */
	uint32_t epoch; /* its number */
	uint32_t further; /* 1; 0: nobody calls set_epoch */
	uint64_t base;
	/* The window. */
	uint64_t front, high, top, sum;
	uint64_t next; /* no position before it waits */
	uint64_t
		group; /* the last position of a chunk that was given out; UINT64_MAX */
	/* Positions that a chunk is made ready for: fewer when there was no room. */
	uint64_t reach;
	/* Keys of chunks that readers had decoded themselves, the last ones. */
	uint64_t at_hand[COURSE_AT_HAND];
	unsigned n_at_hand, next_at_hand;
	uint32_t sent; /* to the kernel, the last one's number */
	/* A bit a sample: the kernel was given it, or it was read. */
	uint64_t *has;
	bool fits; /* all of it, so that it need not be made ready again */
	/* Reads of what the kernel should have, from position `since` on. */
	uint64_t gone, since;
	uint64_t calm;     /* no losses that count since there */
	unsigned patience; /* with so many of them */
	uint32_t mask;
	struct slot *slot;
	struct chain *by_key, *by_sample;
	uint64_t latest[COURSE_LATEST]; /* positions seen */
	unsigned n_latest;
	/* The search. */
	bool known, ever;
	uint64_t astray; /* reads that were not expected, since one was */
	uint64_t due;    /* search when there are so many */
	struct spot_reads reads;
	unsigned reads_next;
	uint32_t head_next, whole_next; /* epochs to try */
	uint64_t rest; /* not before so many reads went astray */
	struct course_state state;
};

static inline size_t course_has_size(const struct order *o)
{
	return (o->n / 64 + 1) * sizeof(uint64_t);
}

static inline uint64_t course_bytes(const struct course *c)
{
	return min_u64(c->bytes, c->believed);
}

static inline struct slot *course_slot(struct course *c, uint64_t position)
{
	return &c->slot[position & c->mask];
}

/* The position that a slot is at, given that it is one of the window. */
static inline uint64_t course_position(const struct course *c, uint32_t slot)
{
	return c->front + ((slot - (uint32_t)c->front) & c->mask);
}

static inline struct chain *course_chain(struct course *c, uint64_t key)
{
	return &c->by_key[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & c->mask];
}

static inline uint64_t course_slack(const struct course *c)
{
	return min_u64(c->slack, (c->top - c->front) / 2);
}

/* As many positions as fit, two at least; some of them now. */
void course_extend(struct course *c);
/* The sample of a position was asked for, the first time. */
void course_was_read(struct course *c, struct slot *s);
/* Does all of it fit into the window? */
void course_look_at_room(struct course *c);
/* The kernel is believed to have what it was given, from here on; and more than before. */
void course_trust(struct course *c);
void course_trust_more(struct course *c);
/* Begin at these positions of epoch `epoch`, whose order is at[which]. */
void course_begin(struct course *c, uint32_t epoch, unsigned which,
		  const struct spot *where);
/* Empty the window. */
void course_clear(struct course *c);
/* Where are the reads that went astray?  True: found, and begun anew. */
bool course_search(struct course *c);
/* The order of an epoch, in at[which]; false: no memory. */
bool course_make(struct course *c, uint32_t epoch, unsigned which);

#endif
