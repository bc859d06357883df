/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses what to make ready next for readers on a course. */
/*
 * First comes the rest of the chunk that was begun.  Then come the other samples of
 * chunks that were decoded for readers, as long as the kernel has room for all: readers
 * are faster then than making ready, and decoding another chunk beside theirs would only
 * slow them down.  Then comes the next position that is near.
 *
 * If all samples fit into the window, the kernel has them from the epoch before, and
 * they are not made ready again (except in short orders).  If readers ask for many
 * samples that the kernel should have, it has lost others as well: then all are made
 * ready again, and half as far ahead.
 */
#include <string.h>

#include "readahead/order/course_private.h"

/* The kernel has lost files if one read in GONE_SHARE, and at least COURSE_PATIENCE of
 * them, asks for a sample that it should have; if that happens again and again, more
 * such reads are needed, up to PATIENCE_MAX. */
#define GONE_SHARE 8
#define PATIENCE_MAX 4096
#define ENOUGH 64 /* but one in this many of all samples is always enough */
/* An order is short if it is not this many times as long as its readers are apart. */
#define SHORT 8
/* After a loss the kernel is believed to keep half as much, but not less than the
 * caller's `least`, nor than this part of the window's bytes. */
#define BELIEVED_MIN 64

/* ---- what the kernel has -------------------------------------------------- */

static bool kernel_has(const struct course *c, uint32_t sample)
{
	return c->has[sample / 64] >> sample % 64 & 1;
}

static void kernel_set_has(struct course *c, uint32_t sample, bool yes)
{
	uint64_t bit = UINT64_C(1) << sample % 64;

	c->has[sample / 64] =
		yes ? c->has[sample / 64] | bit : c->has[sample / 64] & ~bit;
}

/* In an order that is short compared with how far its readers are apart, reads of one
 * epoch may be taken for those of another, and do not tell what was lost. */
static bool is_short(const struct course *c)
{
	return c->order.length < SHORT * (c->slack + COURSE_LEAD);
}

/* Return true if all samples fit into the window, if they are as large on average as
 * those in it. */
static bool all_fit(const struct course *c)
{
	return c->top > c->front && !is_short(c) &&
	       (double)c->sum * (double)c->order.n <=
		       (double)course_bytes(c) * (double)(c->top - c->front);
}

/* Look again at positions that were passed: they may have to be made ready after all. */
static void course_go_back(struct course *c)
{
	c->next = max_u64(c->front, min_u64(c->next, c->high + 1));
}

void course_look_at_room(struct course *c)
{
	bool fits = all_fit(c);

	if (c->fits && !fits)
		course_go_back(c);
	c->fits = fits;
}

/* Return true if the kernel has the sample from before. */
static bool is_warm(const struct course *c, const struct slot *s)
{
	return c->fits && kernel_has(c, s->sample);
}

static bool slot_waits(const struct course *c, const struct slot *s)
{
	return s->state == SLOT_WAITS && !is_warm(c, s);
}

/* Return how many positions of the window a chunk is made ready for.  These are not all
 * of them while the window has too many bytes, until it has shrunk as readers go on. */
static uint64_t reach_of(const struct course *c)
{
	double n = (double)(c->top - c->front), most = (double)course_bytes(c);

	if (c->sum <= course_bytes(c))
		return c->reach;
	return min_u64(c->reach, (uint64_t)(n * most / (double)c->sum) + 1);
}

/* Return true if the kernel was given the sample and has had time to read it. */
static bool is_given(const struct course *c, const struct slot *s)
{
	return (s->state == SLOT_READY && !s->kept) ||
	       (s->state == SLOT_SENT && c->sent - s->sent > COURSE_SENDING);
}

static void course_forget_kernel(struct course *c)
{
	memset(c->has, 0, course_has_size(&c->order));
	for (uint64_t p = max_u64(c->front, c->high + 1); p < c->top; p++) {
		struct slot *s = course_slot(c, p);

		if (is_given(c, s) && !s->seen)
			s->state = SLOT_WAITS;
	}
	course_go_back(c);
	/* Half of what the window really had. */
	c->believed =
		max_u64(course_bytes(c), min_u64(c->believed, c->sum)) / 2;
	c->believed = max_u64(max_u64(c->believed, c->least),
			      c->bytes / BELIEVED_MIN + 1);
	c->patience =
		(unsigned)min_u64(UINT64_C(2) * c->patience, PATIENCE_MAX);
	course_trust(c);
}

void course_trust_more(struct course *c)
{
	if (c->believed <= UINT64_MAX / 2)
		c->believed *= 2;
	c->patience = (unsigned)max_u64(c->patience / 2, COURSE_PATIENCE);
	course_trust(c);
}

void course_trust(struct course *c)
{
	c->gone = 0;
	c->since = c->calm = c->high;
}

/* Count a read of a sample that the kernel should have.  Returns true if it has lost
 * many lately. */
static bool has_lost(struct course *c)
{
	uint64_t enough = max_u64(COURSE_PATIENCE, c->order.length / ENOUGH);

	while (c->high - c->since > UINT64_C(2) * c->patience * GONE_SHARE) {
		c->since += (c->high - c->since) / 2;
		c->gone /= 2;
	}
	return ++c->gone >= min_u64(c->patience, enough) &&
	       c->gone > (c->high - c->since) / GONE_SHARE;
}

/* Note a chunk that was decoded for a reader: its other samples cost little now. */
static void course_note_at_hand(struct course *c, uint64_t key)
{
	if (!key)
		return;
	c->at_hand[c->next_at_hand++ % COURSE_AT_HAND] = key;
	if (c->n_at_hand < COURSE_AT_HAND)
		c->n_at_hand++;
}

void course_was_read(struct course *c, struct slot *s)
{
	bool lost = false;

	if (slot_waits(c, s))
		course_note_at_hand(c, s->key);
	else if (s->state == SLOT_WAITS || is_given(c, s))
		lost = has_lost(c);
	if (s->state == SLOT_WAITS)
		s->state = SLOT_LEFT;
	s->seen = true;
	if (lost)
		course_forget_kernel(c);
	kernel_set_has(c, s->sample, true);
}

/* ---- the next one ---------------------------------------------------------- */

/* Return the distance of marks: smaller if the window has few positions. */
static uint64_t mark_step(const struct course *c)
{
	uint64_t step = (c->top - c->front) / 16;

	return step < 1 ? 1 : min_u64(step, COURSE_MARK);
}

/* Return true if a position is a mark; marks are not always at the same place of a
 * batch. */
static bool is_mark(const struct course *c, uint64_t position)
{
	uint64_t step = mark_step(c);

	return position % step == position / step * 7 % step;
}

static uint64_t lead_end(const struct course *c)
{
	uint64_t half = (c->top - c->front) / 2;

	return min_u64(c->high + 1 +
			       min_u64(course_slack(c) + COURSE_LEAD,
				       max_u64(half, 1)),
		       c->top);
}

/* In a short order the kernel may have all of the next epoch, which cannot be known, so
 * the next epoch waits until readers are near its beginning. */
static uint64_t epoch_end(const struct course *c)
{
	uint64_t end = c->base + c->order.length;

	return is_short(c) && c->high + c->slack + COURSE_LEAD < end
		       ? end
		       : UINT64_MAX;
}

/* Find the next position that waits for the chunk `key`, from slot i - 1 on. */
static bool next_of_chunk(const struct course *c, uint64_t key, uint32_t i,
			  uint64_t *position)
{
	uint64_t reach = reach_of(c), end = epoch_end(c);

	for (; i; i = c->slot[i - 1].next_key) {
		*position = course_position(c, i - 1);
		if (*position - c->front >= reach || *position >= end)
			return false;
		if (c->slot[i - 1].key == key && slot_waits(c, &c->slot[i - 1]))
			return true;
	}
	return false;
}

/* Find the next position of the chunk that was begun. */
static bool next_of_group(struct course *c, uint64_t *position)
{
	const struct slot *s;

	if (c->group == UINT64_MAX || c->group < c->front)
		return false;
	s = course_slot(c, c->group);
	return s->key && next_of_chunk(c, s->key, s->next_key, position);
}

/* Find the first waiting position of the chunk that was last decoded for a reader. */
static bool next_at_hand(struct course *c, uint64_t *position)
{
	if (c->reach < c->top - c->front || c->bytes <= c->least)
		c->n_at_hand = 0;
	while (c->n_at_hand) {
		uint64_t key = c->at_hand[--c->next_at_hand % COURSE_AT_HAND];

		c->n_at_hand--;
		if (next_of_chunk(c, key, course_chain(c, key)->first,
				  position))
			return true;
	}
	return false;
}

static bool next_alone(struct course *c, uint64_t *position)
{
	uint64_t end = lead_end(c);

	while (c->next < end && !slot_waits(c, course_slot(c, c->next)))
		c->next++;
	*position = c->next;
	return c->next < end;
}

bool course_next(struct course *c, struct course_step *out)
{
	bool begins = false;
	uint64_t p;

	if (!c->known)
		return false;
	course_extend(c);
	course_look_at_room(c);
	if (!next_of_group(c, &p) && !next_at_hand(c, &p)) {
		begins = next_alone(c, &p);
		c->group = UINT64_MAX;
		if (!begins)
			return false;
	}
	c->group = p;
	*out = (struct course_step){p, course_slot(c, p)->sample, is_mark(c, p),
				    begins};
	return true;
}

void course_done(struct course *c, uint64_t position, enum course_result r,
		 void *kept)
{
	struct slot *s = course_slot(c, position);

	if (!c->known || position < c->front || position >= c->top) {
		if (kept)
			c->ops->drop(c->ctx, kept);
		return;
	}
	if (!s->seen)
		kernel_set_has(c, s->sample,
			       (r == COURSE_READY && !kept) ||
				       r == COURSE_SENT);
	if (r == COURSE_LATER) {
		s->state = s->seen ? SLOT_LEFT : SLOT_WAITS;
		c->next = min_u64(c->next, position);
		c->group = UINT64_MAX;
		c->reach = min_u64(c->reach, c->top - c->front) / 4 * 3 + 1;
		return;
	}
	s->state = r == COURSE_READY  ? SLOT_READY
		   : r == COURSE_SENT ? SLOT_SENT
				      : SLOT_LEFT;
	if (r == COURSE_SENT)
		s->sent = ++c->sent;
	s->kept = kept;
}

void course_limit(struct course *c, uint64_t bytes, uint64_t least)
{
	c->bytes = bytes;
	c->least = least;
	course_look_at_room(c);
}

unsigned course_ahead(struct course *c, uint32_t *samples, unsigned n)
{
	uint64_t end = lead_end(c), keys[16] = {0};
	unsigned k = 0;

	for (uint64_t p = c->next; c->known && p < end && k < n && k < 16;
	     p++) {
		const struct slot *s = course_slot(c, p);
		unsigned i = 0;

		if (!slot_waits(c, s) || !s->key)
			continue;
		while (i < k && keys[i] != s->key)
			i++;
		if (i < k)
			continue;
		keys[k] = s->key;
		samples[k++] = s->sample;
	}
	return k;
}
