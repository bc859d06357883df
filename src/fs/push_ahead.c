/* SPDX-License-Identifier: BSD-2-Clause */
/* Notice who reads file after file, and say which ones come next. */
/*
 *        last                  mark            frontier
 *     ----|======= window ======m================|------>  numbers, `step` apart
 *      read          pushed, or on its way          not asked for
 *
 * Numbers follow names, so `cat samples/\*` goes by ones, and a rank that takes every
 * eighth file by eights.  The kernel shows us only what it does not have, and a good
 * part was pushed already: as neighbours, or by us.  So a READ continues a stream when
 * all the files that it left out on its way are known to have been pushed; the step is
 * what makes that true.  The fourth READ of that kind begins a window, and each
 * doubles it.  One file in it, the mark, is left for the reader to ask for, as with the
 * kernel's own readahead: when he does, the next window is begun while he has half of
 * this one before him, and those before the mark were of use.
 *
 * A few streams are remembered for all directories.  Random reading hits one by chance
 * now and then, hardly four times in a row by the same step.
 */
#include "fs/push_ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/number.h"

#define STREAMS 16
#define STEP_MAX 1024
/* Files left out on the way that are looked up, at most. */
#define GAP_MAX 128
#define BEHIND_MAX 64
#define BEGIN 3 /* equal steps until something is pushed */
#define WINDOW_MIN 8
#define WINDOW_MAX 128

struct stream {
	uint64_t last, frontier; /* last 0: free */
	int64_t step;            /* 0: one READ so far */
	unsigned steps, window;
	uint64_t tick;
};
struct push_ahead {
	pthread_mutex_t lock; /* all below */
	uint64_t tick;
	struct stream stream[STREAMS];
};

struct push_ahead *push_ahead_new(void)
{
	struct push_ahead *a = calloc(1, sizeof *a);

	if (a)
		pthread_mutex_init(&a->lock, NULL);
	return a;
}

void push_ahead_free(struct push_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static uint64_t distance(int64_t d)
{
	return d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
}

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

/* Does whoever read `from` need nothing of us until `to`? */
static bool is_covered(struct push_worth *w, uint64_t from, uint64_t to,
		       int64_t step)
{
	uint64_t gap = 0;

	for (from += (uint64_t)step; from != to; from += (uint64_t)step)
		if (++gap > GAP_MAX || !push_worth_has(w, from))
			return false;
	return true;
}

/* Several who share the files of a stream do not ask in order. */
static bool is_behind(const struct stream *s, uint64_t ino)
{
	int64_t d = (int64_t)(s->last - ino);

	return s->steps >= BEGIN && (d < 0) == (s->step < 0) &&
	       distance(d) <= distance(s->step) * BEHIND_MAX;
}

/* The step by which `ino` continues the stream; 0: it does not. */
static int64_t step_to(struct push_worth *w, const struct stream *s,
		       uint64_t ino)
{
	int64_t d = (int64_t)(ino - s->last), sign = d < 0 ? -1 : 1, g;

	if (!s->last || d == 0)
		return 0;
	if (!s->step) {
		if (distance(d) > STEP_MAX)
			return 0;
		return is_covered(w, s->last, ino, sign) ? sign : d;
	}
	if (is_behind(s, ino))
		return s->step;
	if (sign != (s->step < 0 ? -1 : 1) ||
	    distance(d) > distance(s->step) * GAP_MAX)
		return 0;
	g = sign * (int64_t)common(distance(s->step), distance(d));
	/* Ours are not all stored yet. */
	if (g == s->step &&
	    distance(d) <= distance((int64_t)(s->frontier - s->last)))
		return g;
	return is_covered(w, s->last, ino, g) ? g : 0;
}

static struct stream *stream_find(struct push_ahead *a, struct push_worth *w,
				  uint64_t ino, int64_t *step)
{
	/* Those that have proved themselves first. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < STREAMS; i++) {
			struct stream *s = &a->stream[i];

			if ((s->step == 0) != (pass == 1))
				continue;
			*step = step_to(w, s, ino);
			if (*step)
				return s;
		}
	return NULL;
}

static void stream_start(struct push_ahead *a, uint64_t ino)
{
	struct stream *s = &a->stream[0];

	for (unsigned i = 1; i < STREAMS; i++)
		if (a->stream[i].tick < s->tick)
			s = &a->stream[i];
	*s = (struct stream){.last = ino, .frontier = ino, .tick = ++a->tick};
}

static bool stream_go(struct stream *s, uint64_t ino, int64_t step,
		      struct push_range *out)
{
	uint64_t before = 0;

	if (is_behind(s, ino))
		return false;
	if (step == s->step && distance((int64_t)(s->frontier - s->last)) >
				       distance((int64_t)(ino - s->last)))
		before =
			distance((int64_t)(s->frontier - ino)) / distance(step);
	else
		s->frontier = ino;
	s->last = ino;
	/* Another one is a guess of its own. */
	if (step != s->step)
		s->steps = s->window = 0;
	s->steps++;
	s->step = step;
	if (s->steps < BEGIN)
		return false;
	s->window = (unsigned)min_u64(max_u64(2 * s->window, WINDOW_MIN),
				      WINDOW_MAX);
	if (before * 2 > s->window)
		return false;
	out->first = s->frontier + (uint64_t)step;
	out->step = step;
	out->n = s->window - (unsigned)before;
	out->mark = out->n / 2;
	s->frontier += (uint64_t)step * out->n;
	return true;
}

bool push_ahead_note(struct push_ahead *a, struct push_worth *w, uint64_t ino,
		     struct push_range *out)
{
	struct stream *s;
	bool more = false;
	int64_t step;

	/* Another reader will be noticed soon enough. */
	if (pthread_mutex_trylock(&a->lock))
		return false;
	s = stream_find(a, w, ino, &step);
	if (s) {
		s->tick = ++a->tick;
		more = stream_go(s, ino, step, out);
	} else {
		stream_start(a, ino);
	}
	pthread_mutex_unlock(&a->lock);
	return more;
}
