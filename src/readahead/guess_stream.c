/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices readers that read file after file, and tells which come next. */
/*
 *        last                  mark            frontier
 *     ----|======= window ======m================|------>  numbers, `step` apart
 *      read          asked for                    not yet
 *
 * Inode numbers follow names, so `cat samples/\*` advances by ones, and a rank that takes
 * every eighth file by eights.  The fourth READ at the same distance begins a window, and
 * each later one doubles it.  Files that were read ahead are read from the page cache, so
 * that the daemon gets no READ.  So one file of the window, the mark, is left for the
 * reader to ask for, as in the kernel's own readahead.  Its READ begins the next window,
 * while half of this one is still in front of the reader.
 *
 * A few streams are remembered for all directories together.  Random reading continues
 * one by chance now and then, but hardly four times in a row by the same step.
 */
#include "readahead/guess_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/number.h"

#define STREAMS 16
/* The largest step, in files: ranks of the largest jobs read this far apart. */
#define STEP_MAX 1024
/* Readers that share the files of a stream do not ask in order: they may be this many
 * steps behind. */
#define BEHIND_MAX 64
/* Equal steps after which files are asked for. */
#define BEGIN 3
/* Files of the first window, and of the largest: 2 MiB of 16 KiB each, for which a
 * reader needs a hundred times as long as asking for them takes. */
#define WINDOW_MIN 8
#define WINDOW_MAX 128

struct stream {
	/* Inode numbers; `last` is 0 in a free slot. */
	uint64_t last, frontier;
	int64_t step; /* 0: there was one READ so far */
	unsigned steps, window;
	uint64_t tick;
};
/* Files that a stream has just passed or is about to read: inode numbers from..to.  It
 * is written under the lock and read without it, so that a thread may see one new and
 * one old number: streams_has is a hint. */
struct reach {
	_Atomic uint64_t from, to; /* `to` is 0: no file */
	_Atomic uint64_t last;     /* the file that was read last */
	_Atomic bool down;         /* the stream goes to smaller numbers */
};
struct streams {
	struct reach reach[STREAMS]; /* reach[i] belongs to stream[i] */
	pthread_mutex_t lock;        /* protects all below */
	uint64_t tick;
	struct stream stream[STREAMS];
};

struct streams *streams_new(void)
{
	struct streams *s = calloc(1, sizeof *s);

	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static uint64_t distance(int64_t d)
{
	return d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
}

static bool is_behind(const struct stream *s, uint64_t ino)
{
	int64_t d = (int64_t)(s->last - ino);

	return s->steps >= BEGIN && (d < 0) == (s->step < 0) &&
	       distance(d) <= distance(s->step) * BEHIND_MAX;
}

/* Return the step by which `ino` continues the stream, or 0 if it does not. */
static int64_t step_to(const struct stream *s, uint64_t ino)
{
	int64_t d = (int64_t)(ino - s->last);
	int64_t asked = (int64_t)(s->frontier - s->last);

	if (!s->last || d == 0)
		return 0;
	if (!s->step)
		return distance(d) <= STEP_MAX ? d : 0;
	if (is_behind(s, ino))
		return s->step;
	if ((d < 0) != (s->step < 0) || d % s->step)
		return 0;
	/* It may be a mark, or the first file behind those asked for. */
	return distance(d) <= distance(asked) + distance(s->step) ? s->step : 0;
}

static void reach_set(struct reach *r, uint64_t from, uint64_t to)
{
	atomic_store_explicit(&r->from, from, memory_order_relaxed);
	atomic_store_explicit(&r->to, to, memory_order_relaxed);
}

/* Publish the reach of a stream.  The caller holds the lock. */
static void reach_update(struct streams *a, const struct stream *s)
{
	uint64_t back = distance(s->step) * BEHIND_MAX;
	struct reach *r = &a->reach[s - a->stream];

	atomic_store_explicit(&r->last, s->last, memory_order_relaxed);
	atomic_store_explicit(&r->down, s->step < 0, memory_order_relaxed);
	if (s->steps < BEGIN)
		reach_set(r, 0, 0);
	else if (s->step > 0)
		reach_set(r, s->last - min_u64(back, s->last), s->frontier);
	else
		reach_set(r, s->frontier, s->last + back);
}

static struct stream *guess_stream_find(struct streams *a, uint64_t ino,
					int64_t *step)
{
	/* Streams that have a step come first. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < STREAMS; i++) {
			struct stream *s = &a->stream[i];

			if ((s->step == 0) != (pass == 1))
				continue;
			*step = step_to(s, ino);
			if (*step)
				return s;
		}
	return NULL;
}

static void guess_stream_start(struct streams *a, uint64_t ino)
{
	struct stream *s = &a->stream[0];

	for (unsigned i = 1; i < STREAMS; i++)
		if (a->stream[i].tick < s->tick)
			s = &a->stream[i];
	*s = (struct stream){.last = ino, .frontier = ino, .tick = ++a->tick};
	reach_update(a, s);
}

static void guess_stream_continue(struct stream *s, uint64_t ino, int64_t step,
				  struct stream_range *out)
{
	uint64_t before = 0;

	if (is_behind(s, ino))
		return;
	if (distance((int64_t)(s->frontier - s->last)) >
	    distance((int64_t)(ino - s->last)))
		before =
			distance((int64_t)(s->frontier - ino)) / distance(step);
	else
		s->frontier = ino;
	s->last = ino;
	s->steps++;
	s->step = step;
	if (s->steps < BEGIN)
		return;
	s->window = (unsigned)min_u64(max_u64(2 * s->window, WINDOW_MIN),
				      WINDOW_MAX);
	if (before * 2 > s->window)
		return;
	out->first = s->frontier + (uint64_t)step;
	out->step = step;
	out->n = s->window - (unsigned)before;
	out->mark = out->n / 2;
	s->frontier += (uint64_t)step * out->n;
}

bool streams_note(struct streams *a, uint64_t ino, struct stream_range *out)
{
	struct stream *s;
	bool goes_on = false;
	int64_t step;

	out->n = 0;
	/* If the lock is taken, skip this READ: the stream will be noticed soon
	 * enough. */
	if (pthread_mutex_trylock(&a->lock))
		return false;
	s = guess_stream_find(a, ino, &step);
	if (s) {
		s->tick = ++a->tick;
		guess_stream_continue(s, ino, step, out);
		reach_update(a, s);
		goes_on = s->steps + 1 >= BEGIN;
	} else {
		guess_stream_start(a, ino);
	}
	pthread_mutex_unlock(&a->lock);
	return goes_on;
}

static uint64_t reach_number(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static bool reach_has(const struct reach *r, uint64_t ino)
{
	return reach_number(&r->from) <= ino && ino <= reach_number(&r->to);
}

bool streams_has(const struct streams *a, uint64_t ino)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (reach_has(&a->reach[i], ino))
			return true;
	return false;
}

bool streams_passed(const struct streams *a, uint64_t ino)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct reach *r = &a->reach[i];
		bool down =
			atomic_load_explicit(&r->down, memory_order_relaxed);

		if (reach_has(r, ino) && (down ? ino >= reach_number(&r->last)
					       : ino <= reach_number(&r->last)))
			return true;
	}
	return false;
}
