/* SPDX-License-Identifier: BSD-2-Clause */
/* What the window, the search and the steps of a course share. */
#ifndef READAHEAD_ORDER_COURSE_PRIVATE_H
#define READAHEAD_ORDER_COURSE_PRIVATE_H

#include <stddef.h>

#include "base/number.h"
#include "readahead/order/course.h"
#include "readahead/order/spot.h"

/* How many positions ahead of readers are made ready at once: readers show where they
 * are once in COURSE_MARK positions. */
#define COURSE_LEAD (4 * COURSE_MARK)

/* WAITS: to be made ready.  READY: kept, or the kernel has it.  LEFT: left to its
 * reader.  SENT: on its way to the kernel, or there. */
enum slot_state { SLOT_WAITS, SLOT_READY, SLOT_LEFT, SLOT_SENT };
/* A position of the window.  Links are numbers of slots + 1; 0 is the end of a chain. */
struct slot {
	uint64_t key, size;
	void *kept;
	uint32_t sample;
	uint32_t next_key, next_sample;
	uint32_t sent; /* SENT: the value of course.sent when it was sent */
	uint8_t state; /* enum slot_state */
	bool seen;
};
/* The slots of one hash value, in the order of their positions. */
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
	/* Bytes that the window may have: as the caller says; as the kernel seems to
	 * keep after losses; and the least in spite of losses. */
	uint64_t bytes, believed, least;
	uint64_t slack; /* how many positions readers may be apart */
	/* The orders of two epochs, if made[] is set; in a fixed order at[0] is that of
	 * every epoch. */
	uint32_t *at[2];
	bool made[2];
	/* at[now] is the epoch that begins at position `base`. */
	unsigned now;
	uint32_t epoch; /* the number of that epoch */
	/* Epochs from one to the next: 1, or 0 if the reader does not call set_epoch. */
	uint32_t further;
	uint64_t base;
	/* The window. */
	uint64_t front, high, top, sum;
	uint64_t next; /* no position before it has to be made ready */
	/* The last position given out, whose chunk goes on; UINT64_MAX: none. */
	uint64_t group;
	/* How many positions of the window a chunk is made ready for: fewer when there
	 * was no room. */
	uint64_t reach;
	/* Keys of the chunks last decoded for a READ that was not made ready. */
	uint64_t at_hand[COURSE_AT_HAND];
	unsigned n_at_hand, next_at_hand;
	uint32_t sent; /* how many samples were sent to the kernel */
	/* One bit for each sample: the kernel was given it, or it was read. */
	uint64_t *has;
	/* All samples fit into the window, so that the kernel keeps them from one epoch
	 * to the next. */
	bool fits;
	/* How many reads, from position `since` on, asked for samples that the kernel
	 * should have. */
	uint64_t gone, since;
	/* There were no losses that count since this position. */
	uint64_t calm;
	unsigned patience; /* this many such reads count as losses */
	uint32_t mask;
	struct slot *slot;
	struct chain *by_key, *by_sample;
	/* The latest positions that were read. */
	uint64_t latest[COURSE_LATEST];
	unsigned n_latest;
	/* The search. */
	bool known, ever;
	uint64_t astray; /* unexpected reads since an expected one */
	/* Search when there are this many unexpected reads. */
	uint64_t due;
	struct spot_reads reads;
	unsigned reads_next;
	/* The next epochs to try, by their beginning and as a whole. */
	uint32_t head_next, whole_next;
	uint64_t rest; /* no far search before this many unexpected reads */
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

/* Return the position of a slot, which must be in the window. */
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

/* Extend the window towards the positions that fit into it, at least two.  One call adds
 * a limited number. */
void course_extend(struct course *c);
/* Note that a READ asked for the sample of a position for the first time. */
void course_was_read(struct course *c, struct slot *s);
/* Set c->fits: whether all samples fit into the window. */
void course_look_at_room(struct course *c);
/* Assume from here on that the kernel has what it was given; course_trust_more also lets
 * the window grow. */
void course_trust(struct course *c);
void course_trust_more(struct course *c);
/* Begin the course at these positions of `epoch`, whose order is at[which]. */
void course_begin(struct course *c, uint32_t epoch, unsigned which,
		  const struct spot *where);
/* Empty the window. */
void course_clear(struct course *c);
/* Search the order for the unexpected reads.  Returns true if they were found, and the
 * course begun there. */
bool course_search(struct course *c);
/* Make the order of an epoch in at[which].  Returns false if memory is short. */
bool course_make(struct course *c, uint32_t epoch, unsigned which);

#endif
