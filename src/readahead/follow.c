/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows a known order of reads: the thread, and the tensors that are read. */
/*
 *	READ answered --note--> thread     which sample of which tensor is it?
 *	                          |        course: how far are readers, what is next?
 *	                          |        files made ready (follow_work.c):
 *	                          |----> kept here: their READs show where readers are
 *	                          '----> asked for: the kernel has them (readahead.c)
 *
 * Workers that answer READs only leave an inode number.  All else is done by one thread,
 * which other threads help to decode; it holds no lock meanwhile.  Each tensor that is
 * read has a course of its own in the same order, if its samples can be followed in that
 * order.  Several courses have windows of the same number of samples.
 */
#include "readahead/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "readahead/follow_private.h"
#include "store/thread.h"

/* One byte in this many of the cache may hold kept files. */
#define KEEP_SHARE 2
/* Marks may take one byte in this many of those. */
#define MARKS_SHARE 2
/* How many files of a list are looked at to estimate their mean size. */
#define SIZES 256
/* READs that are handled, and files made ready, in one round. */
#define ROUND 64
/* This many READs wake the thread while no reader is on a course. */
#define WAKE_NOTES 4
/* Nanoseconds until a file that had no room is tried again. */
#define LATER 20000000
/* A track without a READ among this many may be given to another tensor. */
#define IDLE_READS 1024

uint64_t track_ino(const struct track *t, uint32_t sample)
{
	const struct files *files = atomic_load(&t->files);

	if (t->f->order->ino)
		return t->f->order->ino[sample];
	return t->first + files->ops->sample_node(files, t->set, sample);
}

/* ---- tracks -------------------------------------------------------------- */

static void track_clear(struct track *t)
{
	course_free(t->course);
	t->course = NULL;
	atomic_store(&t->known, false);
	atomic_store(&t->files, NULL);
}

/* Return how many bytes may be ready and not read yet when the kernel has lost files
 * that it was given, if this were the only track. */
static uint64_t least_of(const struct follow *f)
{
	return f->ask ? f->keep_max * KEEP_SHARE : f->keep_max;
}

/* Return how many bytes the windows of all tracks may have.  As a rule only the marks
 * are in the cache. */
static uint64_t window_of(const struct follow *f)
{
	if (!f->ask || !f->room)
		return f->keep_max;
	return max_u64(
		min_u64(f->room, f->keep_max / MARKS_SHARE * COURSE_MARK),
		f->keep_max);
}

/* Share the window among the tracks, with the same number of samples for each. */
static void share_window(struct follow *f)
{
	double sum = 0;

	for (unsigned i = 0; i < TRACKS; i++)
		if (f->track[i].course)
			sum += (double)f->track[i].sample;
	for (unsigned i = 0; i < TRACKS; i++) {
		const struct track *t = &f->track[i];
		double share = (double)t->sample / sum;

		if (t->course)
			course_limit(t->course,
				     (uint64_t)((double)window_of(f) * share),
				     (uint64_t)((double)least_of(f) * share));
	}
}

static int track_order(struct track *t, uint64_t n, struct error *err)
{
	const struct follow_order *o = t->f->order;
	uint64_t kept = 0;
	int r = o->ino ? order_of_list(&t->order, o->list, o->length, err)
		       : order_of_samples(&t->order, &o->spec, n, err);

	for (unsigned i = 0; i < TRACKS; i++)
		if (t->f->track[i].course)
			kept += t->f->track[i].order.length;
	if (r == 0 && kept + t->order.length > ORDER_KEPT_MAX)
		r = error_set(
			err, -E2BIG,
			"the orders of all tensors that are read take too much "
			"memory together: this one is not followed");
	return r;
}

/* Return about the mean size of the files in the list. */
static uint64_t mean_size(const struct follow *f)
{
	uint32_t n = f->order->n_inos, step = n / SIZES + 1, k = 0;
	uint64_t sum = 0;
	struct whole w;

	for (uint32_t i = 0; i < n; i += step)
		if (whole_find(f->fs, f->order->ino[i], &w) == 0) {
			sum += w.size;
			k++;
		}
	return k ? sum / k + 1 : 1;
}

/* Begin a track of `n` samples; `ino` is the inode number of one of them. */
static void track_begin(struct track *t, uint64_t n, uint64_t ino)
{
	struct follow *f = t->f;
	struct error err = {0};
	struct whole w;
	int r = track_order(t, n, &err);

	memset(&t->state, 0, sizeof t->state);
	t->sample = f->order->ino                     ? mean_size(f)
		    : whole_find(f->fs, ino, &w) == 0 ? max_u64(w.size, 1)
						      : 1;
	if (r == 0) {
		t->course = course_new(&t->order, window_of(f), &follow_ops, t);
		if (!t->course)
			r = error_no_memory(&err,
					    "the positions of its samples");
	}
	if (r < 0)
		log_warn("order: %s", err.text);
	share_window(f);
}

/* Return a track that is free, or has not been read for long and is cleared; NULL if
 * there is none. */
static struct track *track_free(struct follow *f)
{
	struct track *best = NULL;

	for (unsigned i = 0; i < TRACKS; i++) {
		struct track *t = &f->track[i];

		if (!atomic_load(&t->files))
			return t;
		if (f->reads - t->used > IDLE_READS &&
		    (!best || t->used < best->used))
			best = t;
	}
	if (best)
		track_clear(best);
	return best;
}

static int compare_inos(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Set *sample to the number of a file in the list; return false if it is not there. */
static bool order_lists_file(const struct follow_order *o, uint64_t ino,
			     uint32_t *sample)
{
	const uint64_t *at =
		bsearch(&ino, o->ino, o->n_inos, sizeof ino, compare_inos);

	if (at)
		*sample = (uint32_t)(at - o->ino);
	return at;
}

/* Return the track of which a file is a sample; a new one if none has it and there is
 * room; else NULL. */
static struct track *track_of(struct follow *f, uint64_t ino, uint32_t *sample)
{
	struct files_sample s;
	struct track *t;
	struct node n;

	if (f->order->ino)
		return order_lists_file(f->order, ino, sample) ? &f->track[0]
							       : NULL;
	if (tree_node(f->fs->tree, ino, &n) < 0 || !n.files ||
	    !n.files->ops->sample ||
	    !n.files->ops->sample(n.files, n.node, &s) || s.i > UINT32_MAX)
		return NULL;
	*sample = (uint32_t)s.i;
	for (unsigned i = 0; i < TRACKS; i++) {
		t = &f->track[i];
		if (atomic_load(&t->files) == n.files && t->set == s.set)
			return t;
	}
	t = track_free(f);
	if (!t)
		return NULL;
	t->set = s.set;
	t->first = ino - n.node;
	atomic_store(&t->files, n.files);
	track_begin(t, s.n, ino);
	return t;
}

/* ---- what the thread does -------------------------------------------------- */

/* Warn once that the order is not followed: otherwise only the counters would show
 * it. */
static void warn_another(struct track *t)
{
	struct follow *f = t->f;

	if (f->found || f->warned || !course_is_another(t->course))
		return;
	f->warned = true;
	log_warn(
		"order=%s is not how samples are read: no place in it was "
		"found, so nothing is made ready; %s",
		f->order->ino ? f->order->spec.file : "torch",
		f->order->ino
			? "the reader has another list of names, or another "
			  "order of them"
			: "are seed, world, rank, batch, workers and drop_last "
			  "those of the reader?");
}

static void track_count(struct track *t)
{
	struct course_state s;

	course_state(t->course, &s);
	atomic_store(&t->known, course_is_known(t->course));
	if (s.found != t->state.found)
		log_debug(DEBUG_PREFETCH, "order: epoch %u, position %" PRIu64,
			  s.epoch, s.position);
	if (s.lost != t->state.lost)
		log_debug(DEBUG_PREFETCH, "order: lost in epoch %u", s.epoch);
	counter_add(COUNT_ORDER_FOUND, s.found - t->state.found);
	counter_add(COUNT_ORDER_LOST, s.lost - t->state.lost);
	t->state = s;
	t->f->found |= s.found > 0;
	warn_another(t);
}

static void follow_handle_read(struct follow *f, uint64_t ino)
{
	uint32_t sample;
	struct track *t = track_of(f, ino, &sample);

	f->reads++;
	if (!t)
		return;
	t->used = f->reads;
	if (t->course) {
		course_note(t->course, sample);
		track_count(t);
	}
}

struct round {
	unsigned n;
	uint64_t note[ROUND];
	/* There is more to do; but not before some time. */
	bool busy, later;
};

static void follow_wait_later(struct follow *f)
{
	struct timespec t = clock_after(LATER);

	pthread_cond_timedwait(&f->wake, &f->lock, &t);
}

/* Collect the READs that came in meanwhile, and wait for some if there is nothing else
 * to do.  Returns false when the thread must end. */
static bool follow_collect_reads(struct follow *f, struct round *x)
{
	lock_scope(&f->lock);
	if (x->later && !f->stop && !f->n_notes)
		follow_wait_later(f);
	else
		while (!x->busy && !x->later && !f->stop && !f->n_notes)
			pthread_cond_wait(&f->wake, &f->lock);
	for (x->n = 0; x->n < ROUND && f->n_notes; x->n++, f->n_notes--)
		x->note[x->n] = f->note[(f->next_note - f->n_notes) % NOTES];
	return !f->stop;
}

/* Adapt the window to the memory that is available now. */
static void follow_update_memory(struct follow *f)
{
	uint64_t now = room_left(f->memory), was = f->room;

	if (max_u64(now, was) - min_u64(now, was) <= was / 8)
		return;
	f->room = now;
	share_window(f);
}

/* Make some files of each track ready. */
static void follow_make_round(struct follow *f, struct round *x)
{
	x->busy = x->later = false;
	for (unsigned i = 0; i < TRACKS; i++) {
		struct track *t = &f->track[i];
		enum follow_what what = FOLLOW_MORE;

		for (unsigned k = 0;
		     t->course && k < ROUND / TRACKS && what == FOLLOW_MORE;
		     k++) {
			if (atomic_load(&f->stopping))
				return;
			what = follow_work(t);
		}
		if (!t->course)
			continue;
		x->busy |= what == FOLLOW_MORE;
		x->later |= what == FOLLOW_LATER;
	}
	if (!x->busy)
		follow_flush(f);
}

static void *follow_run(void *arg)
{
	struct follow *f = arg;
	struct round x = {0};

	store_thread.guesses = true;
	while (follow_collect_reads(f, &x)) {
		for (unsigned i = 0; i < x.n; i++)
			follow_handle_read(f, x.note[i]);
		follow_update_memory(f);
		follow_make_round(f, &x);
	}
	return NULL;
}

/* ---- what others call ------------------------------------------------------ */

/* Return true if the file belongs to a track whose readers are where they are
 * expected. */
static bool is_expected(const struct follow *f, uint64_t ino)
{
	uint32_t sample;
	bool any = false;
	struct node n;

	for (unsigned i = 0; i < TRACKS; i++)
		any |= atomic_load(&f->track[i].known);
	if (!any)
		return false;
	if (f->order->ino)
		return order_lists_file(f->order, ino, &sample);
	if (tree_node(f->fs->tree, ino, &n) < 0 || !n.files)
		return false;
	for (unsigned i = 0; i < TRACKS; i++)
		if (atomic_load(&f->track[i].files) == n.files)
			return atomic_load(&f->track[i].known);
	return false;
}

bool follow_note(struct follow *f, uint64_t ino)
{
	bool expected = is_expected(f, ino);

	lock_scope(&f->lock);
	f->note[f->next_note++ % NOTES] = ino;
	if (f->n_notes < NOTES)
		f->n_notes++;
	if (expected || f->n_notes >= WAKE_NOTES)
		pthread_cond_signal(&f->wake);
	return expected;
}

int follow_new(struct follow **out, struct fs *fs, const struct follow_order *o,
	       struct room *room, readahead_fn *ask, void *ctx,
	       struct error *err)
{
	struct follow *f = calloc(1, sizeof *f);
	pthread_condattr_t attr;
	struct cache_usage u;
	int r;

	*out = NULL;
	if (!f)
		return error_no_memory(err, "following order=");
	f->fs = fs;
	f->memory = room;
	f->ask = ask;
	f->ctx = ctx;
	f->order = o;
	cache_usage(store_cache(fs->store), &u);
	f->keep_max = u.budget / KEEP_SHARE;
	f->room = room_left(room);
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->wake, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned i = 0; i < TRACKS; i++)
		f->track[i].f = f;
	if (o->ino)
		track_begin(&f->track[0], o->length, o->ino[0]);
	atomic_store(&fs->kept, chunk_set_new_id());
	r = pthread_create(&f->thread, NULL, follow_run, f);
	if (r != 0) {
		follow_free(f);
		return error_errno(err, -r, "cannot start a thread");
	}
	f->started = true;
	*out = f;
	return 0;
}

void follow_stop(struct follow *f)
{
	if (!f)
		return;
	atomic_store(&f->stopping, true);
	lock_scope(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->wake);
}

void follow_free(struct follow *f)
{
	if (!f)
		return;
	follow_stop(f);
	if (f->started)
		pthread_join(f->thread, NULL);
	for (unsigned i = 0; i < TRACKS; i++)
		track_clear(&f->track[i]);
	atomic_store(&f->fs->kept, 0);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void follow_order_free(struct follow_order *o)
{
	free(o->ino);
	free(o->list);
	o->ino = NULL;
	o->list = NULL;
}
