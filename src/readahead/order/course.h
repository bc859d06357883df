/* SPDX-License-Identifier: BSD-2-Clause */
/* The course that readers are on: how far they are, and what to make ready for them. */
#ifndef READAHEAD_ORDER_COURSE_H
#define READAHEAD_ORDER_COURSE_H

#include "readahead/order/order.h"

/*
 * Pure but for `file` and `drop`; of one thread.  Positions count through epochs:
 *
 *	   front          high     + lead              top
 *	----|--------------|---------|------------------|---------->
 *	 done   being read   made ready at once   made ready with others of their chunk
 *
 * The window from front to top is what fits in `bytes`.  What was made ready is read without a
 * word to us; so one in COURSE_MARK positions is kept here instead of in the kernel, and
 * readers ask for it.  `bytes` should be no more than COURSE_MARK times what can be kept.
 */
#define COURSE_MARK 32
/* Files that are asked for and may not have arrived yet, at most (readahead.c). */
#define COURSE_SENDING 256
#define COURSE_WINDOW_MAX (UINT32_C(1) << 18)

struct course;
/* What is known of a sample's file: others that have the same key (not 0) are made of the
 * same chunk. */
struct course_file {
	uint64_t key, size;
};
struct course_ops {
	/* False: there is nothing to be made ready. */
	bool (*file)(void *ctx, uint32_t sample, struct course_file *out);
	/* What course_done was given is of no use any more. */
	void (*drop)(void *ctx, void *held);
};
/* `o` is copied, its list borrowed.  NULL: no memory. */
struct course *course_new(const struct order *o, uint64_t bytes,
			  const struct course_ops *ops, void *ctx);
void course_free(struct course *c);

/* A sample was read, and we were asked for it. */
void course_note(struct course *c, uint32_t sample);
/* Reads are where they are expected. */
bool course_is_known(const struct course *c);
/* Reads have never been where the order has them, and would have been found by now: an epoch
 * of them, or all epochs were looked through.  Never of an order too short to tell. */
bool course_is_another(const struct course *c);

/* A sample to be made ready: handed to the kernel, or kept.  Several of one chunk come one
 * after the other.  False: nothing is to be done now. */
struct course_step {
	uint64_t position;
	uint32_t sample;
	bool keep;
	bool begins; /* the first of its chunk */
};
bool course_next(struct course *c, struct course_step *out);
enum course_result {
	COURSE_READY, /* with what is kept, or NULL: the kernel has it */
	COURSE_SENT, /* asked for: the kernel has it when COURSE_SENDING others were */
	COURSE_LATER, /* there is no room */
	COURSE_FAILED
};
void course_done(struct course *c, uint64_t position, enum course_result r,
		 void *kept);
/* Another size of the window, from now on; not below `least` where the kernel loses what it
 * was given. */
void course_limit(struct course *c, uint64_t bytes, uint64_t least);
/* Up to n samples that course_next is going to begin a chunk with. */
unsigned course_ahead(struct course *c, uint32_t *samples, unsigned n);

struct course_state {
	uint64_t lost, found; /* times */
	uint64_t marks;       /* reads of what was kept */
	uint32_t epoch, window;
	uint64_t position; /* in the epoch; of the one that is ahead */
};
void course_state(const struct course *c, struct course_state *out);

#endif
