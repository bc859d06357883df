/* SPDX-License-Identifier: BSD-2-Clause */
/* What the window of a course, and the search for it, share. */
#ifndef ORDER_COURSE_PRIVATE_H
#define ORDER_COURSE_PRIVATE_H

#include "order/course.h"
#include "order/spot.h"

enum slot_state { SLOT_WAITS, SLOT_READY, SLOT_LEFT };
/* A position of the window.  Links are numbers of slots + 1; 0: none. */
struct slot {
	uint64_t key, size;
	void *kept;
	uint32_t sample;
	uint32_t next_key, next_sample;
	enum slot_state state;
	bool seen;
};
/* Slots of a hash value, the first position first. */
struct chain {
	uint32_t first, last;
};

#define COURSE_LATEST 5
struct course {
	struct order order;
	const struct course_ops *ops;
	void *ctx;
	uint64_t bytes; /* that the window may have */
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
