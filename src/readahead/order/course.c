/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of a course, and how far readers are in it. */
/*
 * A chunk has many samples, and in a random order they are anywhere.  So the chunk is
 * decoded when the first of them is about to be read, and all others in the window are
 * made ready with it: once for each window, not once for each sample.  That is why a
 * position waits until readers are near (`lead`), even if there is room for it.
 *
 * How far readers are is the second highest of the last positions that READs asked for,
 * since one READ may come from a process that does not follow the order.  All positions
 * within `slack` behind it may still be read.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "readahead/order/course_private.h"

/* A course is given up after this many unexpected reads. */
#define ASTRAY_MAX 64
/* Most positions by which the window is extended at once, for each costs a lookup. */
#define EXTEND_MOST 256
/* Unexpected reads at the first search; the number is doubled up to SEARCH_STEP, then
 * that many come between two searches, ... */
#define SEARCH_FIRST 4
#define SEARCH_STEP 32
#define SEARCH_OFTEN 320 /* ... until there are this many, then: */
#define SEARCH_SELDOM 128

struct course *course_new(const struct order *o, uint64_t bytes,
			  const struct course_ops *ops, void *ctx)
{
	struct course *c = calloc(1, sizeof *c);
	uint32_t slots = 64;

	if (!c)
		return NULL;
	while (slots < COURSE_WINDOW_MAX && slots < o->length)
		slots *= 2;
	c->order = *o;
	c->ops = ops;
	c->ctx = ctx;
	c->bytes = bytes;
	c->believed = UINT64_MAX;
	c->patience = COURSE_PATIENCE;
	c->slack = order_spec_slack(&o->spec);
	c->further = 1;
	c->due = SEARCH_FIRST;
	c->group = c->reach = UINT64_MAX;
	c->mask = slots - 1;
	c->slot = calloc(slots, sizeof *c->slot);
	c->by_key = calloc(slots, sizeof *c->by_key);
	c->by_sample = calloc(slots, sizeof *c->by_sample);
	c->at[0] = malloc((o->length ? o->length : 1) * sizeof **c->at);
	c->has = calloc(1, course_has_size(o));
	if (c->has && c->slot && c->by_key && c->by_sample && c->at[0])
		return c;
	course_free(c);
	return NULL;
}

void course_free(struct course *c)
{
	if (!c)
		return;
	if (c->slot)
		course_clear(c);
	free(c->slot);
	free(c->by_key);
	free(c->by_sample);
	free(c->at[0]);
	free(c->at[1]);
	free(c->has);
	free(c);
}

void course_state(const struct course *c, struct course_state *out)
{
	*out = c->state;
	out->epoch = c->epoch;
	out->window = (uint32_t)(c->top - c->front);
	out->position = c->high > c->base ? c->high - c->base : 0;
}

bool course_is_known(const struct course *c)
{
	return c->known && c->astray < 8;
}

/* ---- the window ---------------------------------------------------------- */

static struct chain *sample_chain(struct course *c, uint32_t sample)
{
	return &c->by_sample[sample * 2654435761u >> 7 & c->mask];
}

static void drop_first(struct course *c)
{
	struct slot *s = course_slot(c, c->front);
	struct chain *k = course_chain(c, s->key),
		     *n = sample_chain(c, s->sample);

	/* The slot is the first of both chains: they are in the order of positions. */
	if (s->key)
		k->first = s->next_key;
	n->first = s->next_sample;
	c->sum -= s->size;
	if (s->kept)
		c->ops->drop(c->ctx, s->kept);
	s->kept = NULL;
	c->front++;
}

void course_clear(struct course *c)
{
	while (c->front < c->top)
		drop_first(c);
	c->group = UINT64_MAX;
	c->n_at_hand = 0;
}

static void chain_append(struct course *c, struct chain *chain, size_t link)
{
	uint32_t number = (uint32_t)(c->top & c->mask) + 1;
	char *last = (char *)&c->slot[chain->last - 1];

	if (chain->first)
		memcpy(last + link, &number, sizeof number);
	else
		chain->first = number;
	chain->last = number;
}

static bool is_steady(const struct course *c)
{
	return order_is_fixed(&c->order) || !c->further;
}

/* Return the sample at a position that course reaches. */
static uint32_t course_sample_at(const struct course *c, uint64_t position)
{
	uint64_t i = position - c->base;

	if (i < c->order.length)
		return c->at[c->now][i];
	return c->at[is_steady(c) ? c->now : !c->now][i - c->order.length];
}

/* Return true if the order is known up to this position; make that of the next epoch if
 * needed. */
static bool reaches(struct course *c, uint64_t position)
{
	uint64_t i = position - c->base, n = c->order.length;

	return i < n || (i < 2 * n && (is_steady(c) || c->made[!c->now] ||
				       course_make(c, c->epoch + 1, !c->now)));
}

static void add_last(struct course *c)
{
	struct slot *s = course_slot(c, c->top);
	struct course_file f = {0, 0};

	*s = (struct slot){.sample = course_sample_at(c, c->top)};
	if (!c->ops->file(c->ctx, s->sample, &f))
		s->state = SLOT_LEFT;
	s->key = f.key;
	s->size = f.size;
	if (s->key)
		chain_append(c, course_chain(c, s->key),
			     offsetof(struct slot, next_key));
	chain_append(c, sample_chain(c, s->sample),
		     offsetof(struct slot, next_sample));
	c->sum += s->size;
	c->top++;
}

void course_extend(struct course *c)
{
	for (unsigned i = 0;
	     i < EXTEND_MOST && c->top - c->front <= c->mask &&
	     c->top - c->front < c->order.length &&
	     (c->sum < course_bytes(c) || c->top <= c->high + 1) &&
	     reaches(c, c->top);
	     i++)
		add_last(c);
}

static void course_lose(struct course *c)
{
	course_clear(c);
	c->known = false;
	c->state.lost++;
}

/* Go on to the next epoch: all readers are in it. */
static void course_turn_epoch(struct course *c)
{
	c->base += c->order.length;
	course_trust_more(c);
	if (is_steady(c)) {
		c->epoch += c->further;
		return;
	}
	c->made[c->now] = false;
	c->now = !c->now;
	c->epoch++;
	if (!c->made[c->now]) /* there was no memory for its order */
		course_lose(c);
}

/* Drop the positions that are more than `slack` behind readers. */
static void course_advance(struct course *c)
{
	uint64_t slack = course_slack(c), n = c->order.length;
	uint64_t to = c->high > slack ? c->high - slack : 0;

	if (to > c->front && c->reach <= c->mask)
		c->reach += (to - c->front + 3) / 4;

	if (c->high - c->calm > 2 * (c->top - c->front))
		course_trust_more(c);
	while (c->front < to && c->front < c->top)
		drop_first(c);
	c->next = max_u64(c->next, c->front);
	if (c->front >= c->base + n)
		course_turn_epoch(c);
}

/* ---- reads --------------------------------------------------------------- */

/* Find the position in the window where a sample is read: the one nearest to readers.  At
 * the end of an epoch it may be one of the next epoch, too; several requests for one
 * file do not lead there. */
static bool course_find_position(struct course *c, uint32_t sample,
				 uint64_t *position)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t i = sample_chain(c, sample)->first; i;
	     i = c->slot[i - 1].next_sample) {
		uint64_t p = course_position(c, i - 1), far;

		if (c->slot[i - 1].sample != sample)
			continue;
		far = p > c->high ? p - c->high : c->high - p;
		if (far < best) {
			best = far;
			*position = p;
		}
		if (p > c->high) /* all later positions are further away */
			break;
	}
	return best != UINT64_MAX;
}

void course_begin(struct course *c, uint32_t epoch, unsigned which,
		  const struct spot *where)
{
	/* Losses in another epoch, or in an earlier pass through this one, do not count
	 * any more. */
	bool other = epoch != c->epoch || c->base + where->high < c->high;
	uint64_t position;

	course_clear(c);
	c->base = c->top; /* no position is used twice */
	c->now = which;
	c->made[!which] = false;
	c->epoch = epoch;
	c->front = c->top = c->next =
		c->base + where->low - min_u64(where->low, c->slack);
	c->high = c->base + where->high;
	c->n_latest = 0;
	if (other)
		course_trust_more(c);
	else
		course_trust(c);
	c->known = c->ever = true;
	c->state.found++;
	course_extend(c);
	course_look_at_room(c);
	while (c->front < c->base + where->low &&
	       c->high - c->front > (c->top - c->front) / 2) {
		drop_first(c);
		course_extend(c);
	}
	c->next = c->front;
	/* Readers that are behind those found read these positions without help. */
	for (uint64_t p = c->front; p < c->base + where->low; p++)
		course_slot(c, p)->state = SLOT_LEFT;
	for (unsigned i = 0; i < c->reads.n; i++)
		if (course_find_position(c, c->reads.at[i], &position)) {
			course_slot(c, position)->seen = true;
			course_slot(c, position)->state = SLOT_LEFT;
		}
}

static void course_see_position(struct course *c, uint64_t position)
{
	struct slot *s = course_slot(c, position);
	uint64_t first = 0, second = 0;

	if (s->seen)
		return;
	if (s->kept)
		c->state.marks++;
	course_was_read(c, s);
	c->latest[c->n_latest++ % COURSE_LATEST] = position;
	for (unsigned i = 0; i < min_u64(c->n_latest, COURSE_LATEST); i++) {
		uint64_t p = c->latest[i];

		second = p > first ? first : max_u64(p, second);
		first = max_u64(p, first);
	}
	if (c->n_latest > 1 && second > c->high) {
		c->high = second;
		course_advance(c);
	}
}

static bool is_new(const struct course *c, uint32_t sample)
{
	for (unsigned i = 0; i < c->reads.n; i++)
		if (c->reads.at[i] == sample)
			return false;
	return true;
}

static void course_go_astray(struct course *c, uint32_t sample)
{
	if (!is_new(c, sample)) /* another request for the same file */
		return;
	c->reads.at[c->reads_next++ % SPOT_READS] = sample;
	c->reads.n = (unsigned)min_u64(c->reads_next, SPOT_READS);
	if (++c->astray < c->due)
		return;
	if (course_search(c)) {
		c->astray = 0;
		c->due = SEARCH_FIRST * 2;
		c->reads.n = c->reads_next = 0;
		return;
	}
	c->due = c->astray < SEARCH_STEP    ? c->astray * 2
		 : c->astray < SEARCH_OFTEN ? c->astray + SEARCH_STEP
					    : c->astray + SEARCH_SELDOM;
	if (c->known && c->astray >= ASTRAY_MAX)
		course_lose(c);
}

void course_note(struct course *c, uint32_t sample)
{
	uint64_t position;

	if (!c->order.length)
		return;
	/* A READ far ahead may be another process's; if such READs are many, the search
	 * finds them. */
	if (!c->known || !course_find_position(c, sample, &position) ||
	    position > c->high + course_slack(c) + 2 * COURSE_LEAD) {
		course_go_astray(c, sample);
		return;
	}
	c->astray /= 2;
	c->due = SEARCH_FIRST * 2;
	if (!c->astray)
		c->reads.n = c->reads_next = 0;
	course_see_position(c, position);
}
