/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches the epoch that is being read, and the position in it. */
/*
 * The beginning of an epoch's order can be made for less than the whole order, so
 * thousands of epochs are tried by their beginning.  The likely ones come first: the
 * next epoch, the same one again (the reader did not call set_epoch), the first epochs.
 * A reader that goes on in the middle of an epoch is found by looking through a whole
 * order: that of this epoch and of the next one, then those of a few epochs at each
 * search, in turn.  When all were tried, that is not done again until twice as many
 * reads were unexpected: an order that is not followed costs less and less.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "readahead/order/course_private.h"

#define HEADS_MAX 4096 /* epochs that are tried by their beginning */
#define WHOLE_MAX 1024 /* epochs that are tried as a whole */
/* Epochs that are tried by their beginning in every search. */
#define NEAR_MAX 32
/* Readers found more than this times the slack behind have begun the epoch anew. */
#define SLACK_GROWS 8
/* Steps that one search may take, about 1 ms and 20 ms. */
#define HEADS_COST (UINT64_C(1) << 19)
#define WHOLE_COST (UINT64_C(1) << 22)
/* Fewer reads are not enough to choose between so many epochs. */
#define HEADS_READS 8
#define WHOLE_READS 16
/* This many reads are enough to tell that they follow another order. */
#define ANOTHER_MIN 512

/* Return which at[] has the order of an epoch, or is to have it. */
static unsigned place_for(struct course *c, uint32_t epoch)
{
	if (order_is_fixed(&c->order))
		return 0;
	if (c->made[c->now] && epoch == c->epoch)
		return c->now;
	if (epoch != c->epoch + 1)
		c->made[!c->now] = false;
	return !c->now;
}

bool course_make(struct course *c, uint32_t epoch, unsigned which)
{
	uint32_t n = c->order.length;

	c->made[which] = false;
	if (!c->at[which])
		c->at[which] = malloc(n * sizeof **c->at);
	if (!c->at[which] || !order_epoch(&c->order, epoch, n, c->at[which]))
		return false;
	c->made[which] = true;
	return true;
}

static uint32_t stretch_of(const struct course *c, unsigned per_read)
{
	uint64_t stretch = c->slack + (uint64_t)per_read * c->reads.n;

	return (uint32_t)max_u64(min_u64(stretch, c->order.length / 4), 1);
}

/* Learn whether the reader calls set_epoch, from an epoch that is found at its
 * beginning. */
static void learn_step(struct course *c, uint32_t epoch,
		       const struct spot *where)
{
	if (!c->ever || where->low > c->order.length / 4)
		return;
	if (epoch == c->epoch)
		c->further = 0;
	else if (epoch == c->epoch + 1)
		c->further = 1;
}

/* Learn that readers are further apart than expected, if some are found behind the
 * others. */
static void learn_slack(struct course *c, uint32_t epoch,
			const struct spot *where)
{
	uint64_t high = c->high - c->base;

	if (c->known && epoch == c->epoch && c->high >= c->base &&
	    where->low < high && high - where->low < SLACK_GROWS * c->slack)
		c->slack = max_u64(c->slack, min_u64(high - where->low,
						     COURSE_WINDOW_MAX / 4));
}

static bool search_begin_course(struct course *c, uint32_t epoch,
				unsigned which, const struct spot *where)
{
	if (!c->made[which] && !course_make(c, epoch, which))
		return false;
	learn_step(c, epoch, where);
	learn_slack(c, epoch, where);
	course_begin(c, epoch, which, where);
	c->head_next = c->whole_next = 0;
	c->rest = 0;
	return true;
}

/* Return true if the reads are found at the beginning of an epoch, and begin the course
 * there.  `head` has room for the positions of stretch_of. */
static bool try_head(struct course *c, uint32_t epoch, uint64_t tries,
		     uint32_t *head)
{
	uint32_t k = stretch_of(c, 2);
	struct spot_search s = {head, k, c->order.length, k, tries};
	struct spot where;

	if (!spot_could(&s, c->reads.n) ||
	    !order_epoch(&c->order, epoch, k, head) ||
	    !spot_find(&s, &c->reads, &where))
		return false;
	where.low = 0;
	return search_begin_course(c, epoch, place_for(c, epoch), &where);
}

static bool try_whole(struct course *c, uint32_t epoch, unsigned which,
		      uint64_t tries)
{
	struct spot_search s = {c->at[which], c->order.length, c->order.length,
				stretch_of(c, 4), tries};
	struct spot where;

	return spot_find(&s, &c->reads, &where) &&
	       search_begin_course(c, epoch, which, &where);
}

static bool search_likely(struct course *c, uint32_t *head)
{
	uint32_t next = c->ever ? c->epoch + c->further : 0;

	if (order_is_fixed(&c->order))
		return try_head(c, next, 1, head);
	return try_head(c, next, 4, head) ||
	       (c->ever && try_head(c, c->epoch + 1, 4, head)) ||
	       (c->ever && try_head(c, c->epoch, 4, head)) ||
	       (next && try_head(c, 0, 4, head));
}

/* Search the orders that are in memory. */
static bool search_kept(struct course *c)
{
	unsigned now = c->now;

	if (order_is_fixed(&c->order) && !c->made[0] && !course_make(c, 0, 0))
		return false;
	return (c->made[now] && try_whole(c, c->epoch, now, 2)) ||
	       (c->made[!now] && try_whole(c, c->epoch + 1, !now, 2));
}

/* Search the beginnings of the first epochs, and of those after the one that was
 * read. */
static bool search_near(struct course *c, uint32_t *head)
{
	uint64_t cost = order_cost(&c->order, stretch_of(c, 2)), spent = 0;

	for (uint32_t i = 0; i < NEAR_MAX && spent <= HEADS_COST;
	     i++, spent += 2 * cost)
		if (try_head(c, i, 2 * NEAR_MAX, head) ||
		    (c->ever &&
		     try_head(c, c->epoch + 2 + i, 2 * NEAR_MAX, head)))
			return true;
	return false;
}

static bool search_heads(struct course *c, uint32_t *head)
{
	uint64_t cost = order_cost(&c->order, stretch_of(c, 2)), spent = 0;

	while (c->head_next < HEADS_MAX && spent <= HEADS_COST) {
		if (try_head(c, c->head_next++, HEADS_MAX, head))
			return true;
		spent += cost;
	}
	return false;
}

/* Search whole epochs, but not while the course is known: its two orders are still
 * needed. */
static bool search_whole(struct course *c)
{
	uint64_t cost = order_cost(&c->order, c->order.length), spent = 0;
	unsigned which = !c->now;

	for (; !c->known && c->whole_next < WHOLE_MAX && spent <= WHOLE_COST;
	     spent += cost) {
		if (!course_make(c, c->whole_next, which))
			return false;
		if (try_whole(c, c->whole_next, which, WHOLE_MAX))
			return true;
		c->whole_next++;
	}
	c->made[which] = false;
	return false;
}

static bool search_far(struct course *c, uint32_t *head)
{
	if (search_heads(c, head) ||
	    (c->reads.n >= WHOLE_READS && search_whole(c)))
		return true;
	if (c->head_next == HEADS_MAX && c->whole_next == WHOLE_MAX) {
		c->head_next = c->whole_next = 0;
		c->rest = 2 * c->astray;
	}
	return false;
}

bool course_search(struct course *c)
{
	cleanup_free uint32_t *head =
		malloc((c->slack + 4 * SPOT_READS + 1) * sizeof *head);

	if (!head)
		return false;
	if (search_likely(c, head) || search_kept(c))
		return true;
	if (order_is_fixed(&c->order))
		return false;
	if (c->reads.n < HEADS_READS)
		return false;
	if (search_near(c, head))
		return true;
	return c->astray >= c->rest && search_far(c, head);
}

bool course_is_another(const struct course *c)
{
	uint64_t tried = order_is_fixed(&c->order) || c->rest
				 ? ANOTHER_MIN
				 : max_u64(c->order.length, ANOTHER_MIN);

	/* The order must be long enough that readers as far apart as possible are still
	 * near each other in it. */
	return !c->ever && c->astray >= tried &&
	       c->order.length / 4 >= c->slack + 4 * SPOT_READS;
}
