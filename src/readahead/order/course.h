/* SPDX-License-Identifier: BSD-2-Clause */
/* A course: how far readers are in an order, and what to make ready for them. */
#ifndef READAHEAD_ORDER_COURSE_H
#define READAHEAD_ORDER_COURSE_H

#include "readahead/order/order.h"

/*
 * Pure functions but for `file` and `drop`; one thread uses a course.  Positions count on
 * through all epochs:
 *
 *	   front          high     + lead              top
 *	----|--------------|---------|------------------|---------->
 *	 done   being read   ready at once     ready with others of their chunk
 *
 * The window from front to top has the positions that fit into `bytes`.  Samples that the
 * kernel has are read without a READ to the daemon; so one in COURSE_MARK positions, a
 * mark, is kept in the daemon instead, and its READ shows where readers are.  `bytes`
 * should be no more than COURSE_MARK times the bytes that can be kept.
 */
#define COURSE_MARK 32
/* Most files that were asked for and may not have arrived yet (readahead.c). */
#define COURSE_SENDING 256
#define COURSE_WINDOW_MAX (UINT32_C(1) << 18)

struct course;
/* A sample's file.  Files with the same key, if it is not 0, are made of the same chunk.
 * `size` is in bytes. */
struct course_file {
	uint64_t key, size;
};
struct course_ops {
	/* Describe the file of a sample.  Returns false if it is not to be made
	 * ready. */
	bool (*file)(void *ctx, uint32_t sample, struct course_file *out);
	/* Free what was given to course_done as `kept`: it is not needed any more. */
	void (*drop)(void *ctx, void *held);
};
/* Return a course, or NULL if memory is short.  `o` is copied, its list borrowed until
 * course_free.  The window may have `bytes` bytes. */
struct course *course_new(const struct order *o, uint64_t bytes,
			  const struct course_ops *ops, void *ctx);
void course_free(struct course *c);

/* Note that a READ asked for a sample. */
void course_note(struct course *c, uint32_t sample);
/* Return true if reads are where they are expected. */
bool course_is_known(const struct course *c);
/* Return true if reads have never been where the order has them and would have been
 * found by now: after an epoch of reads, or when all epochs were searched.  Never true
 * for an order that is too short to tell. */
bool course_is_another(const struct course *c);

/* A sample that is to be made ready: given to the kernel, or kept.  Samples of one chunk
 * come one after the other. course_next returns false if nothing is to be done now. */
struct course_step {
	uint64_t position;
	uint32_t sample;
	bool keep;
	bool begins; /* it is the first of its chunk */
};
bool course_next(struct course *c, struct course_step *out);
enum course_result {
	/* `kept` is its copy; if `kept` is NULL, the kernel has it. */
	COURSE_READY,
	/* Asked for: the kernel has it once COURSE_SENDING others were asked for. */
	COURSE_SENT,
	COURSE_LATER, /* there is no room now */
	COURSE_FAILED
};
void course_done(struct course *c, uint64_t position, enum course_result r,
		 void *kept);
/* Change the size of the window to `bytes` bytes; it is not reduced below `least` when
 * the kernel loses files that it was given. */
void course_limit(struct course *c, uint64_t bytes, uint64_t least);
/* Fill `samples` with up to `n` samples with which course_next is going to begin a
 * chunk; return how many. */
unsigned course_ahead(struct course *c, uint32_t *samples, unsigned n);

struct course_state {
	/* How many times readers left the order; were found in it. */
	uint64_t lost, found;
	uint64_t marks; /* reads of kept samples */
	uint32_t epoch, window;
	uint64_t position; /* in the epoch, of the reader that is ahead */
};
void course_state(const struct course *c, struct course_state *out);

#endif
