/* SPDX-License-Identifier: BSD-2-Clause */
/* Guesses which small files are read next, and has them read ahead. */
/*
 *     READ answered --note--> job    (in a bounded queue)
 *                              |
 *     one thread     which files?    maps, asks the cache, decodes what is next
 *                              |
 *     helper         asks the kernel (readahead.c), which sends READs like any other
 *
 * A READ never waits for a guess: workers that answer READs only queue a job, or drop it
 * if the queue is full.  A guess does not cause another one: READs that the helper has
 * caused are not noted.
 */
#include "readahead/guess.h"

#include <errno.h>
#include <stdlib.h>

#include "base/counters.h"
#include "readahead/guess_private.h"
#include "store/thread.h"

#define JOBS 64
/* Most bytes of page cache that one job may fill; if fewer are left, memory is short. */
#define JOB_BYTES (READAHEAD_FILES * GUESS_FILE_MAX)

struct job {
	struct guess *guess;
	uint64_t ino; /* the file that was read */
	/* The next files; n is 0: read the neighbours instead. */
	struct stream_range range;
};

/* ---- asking ---------------------------------------------------------------- */

void guess_flush(struct guess_list *l)
{
	struct guess *g = l->guess;

	if (l->n && g->ask(g->ctx, l->ino, l->n) < 0)
		atomic_store(&g->stop, true);
	l->n = 0;
}

bool guess_add(struct guess_list *l, uint64_t ino)
{
	l->ino[l->n++] = ino;
	if (l->n == READAHEAD_FILES)
		guess_flush(l);
	return !atomic_load(&l->guess->stop);
}

/* Find the `i`-th of the next files; its size is 0 if it is not a file to be read.
 * Returns false if there are no more. */
static bool guess_next_file(const struct job *j, const struct whole *of,
			    unsigned i, struct whole *out)
{
	uint64_t ino = j->range.first + (uint64_t)j->range.step * i;

	if (whole_find(j->guess->fs, ino, out) < 0)
		out->size = 0; /* a directory, or a second name of a file */
	return !out->size || whole_is_sibling(out, of);
}

static bool guess_wants_file(const struct job *j, const struct whole *w,
			     unsigned i)
{
	return w->size && w->size <= GUESS_FILE_MAX && i != j->range.mark &&
	       !streams_passed(j->guess->streams, w->ino);
}

/* Ask for siblings of the file that was read.  Their chunks are decoded first: otherwise
 * all workers might wait for a chunk that is needed next, and none would be left for
 * what is needed now. */
static void guess_ask_for_range(const struct job *j)
{
	struct guess_list list = {.guess = j->guess};
	struct fs *fs = j->guess->fs;
	struct whole of, w;
	uint64_t ahead = 0;

	if (whole_find(fs, j->ino, &of) < 0)
		return;
	for (unsigned i = 0; i < j->range.n && guess_next_file(j, &of, i, &w);
	     i++)
		if (guess_wants_file(j, &w, i) && !whole_want(fs, &w, &ahead))
			break;
	for (unsigned i = 0; i < j->range.n && guess_next_file(j, &of, i, &w);
	     i++)
		if (guess_wants_file(j, &w, i) && whole_decode(fs, &w) &&
		    !guess_add(&list, w.ino))
			break;
	guess_flush(&list);
}

static void guess_run_job(void *arg)
{
	struct job *j = arg;

	store_thread.guesses = store_thread.decodes = true;
	if (atomic_load(&j->guess->stop))
		;
	else if (j->range.n)
		guess_ask_for_range(j);
	else
		guess_near(j->guess, j->ino);
	free(j);
}

/* Queue a job.  Returns false if memory is short or the queue is full. */
static bool guess_submit_job(struct guess *g, uint64_t ino,
			     struct stream_range range)
{
	struct job *j;

	if (room_left(g->room) < JOB_BYTES) {
		counter_add(COUNT_AHEAD_REFUSED, 1);
		return false;
	}
	j = malloc(sizeof *j);
	if (!j)
		return false;
	*j = (struct job){g, ino, range};
	if (pool_try_submit(g->pool, guess_run_job, j))
		return true;
	free(j);
	return false;
}

/* ---- what others call ------------------------------------------------------ */

void guess_note(struct guess *g, pid_t reader, uint64_t ino, uint64_t off,
		const struct reply *r, bool waited)
{
	const struct stream_range none = {.n = 0};
	struct stream_range range = none;
	enum guess_due due = GUESS_NOT;
	bool idle, in_stream;

	if (!r->len || r->size > GUESS_FILE_MAX ||
	    atomic_load_explicit(&g->stop, memory_order_relaxed))
		return;
	idle_note(g->idle, reader);
	/* If no processor is idle, the helper and a worker take time from the readers
	 * for a file that is read ahead, and more than reading ahead saves. */
	idle = idle_now(g->idle);
	in_stream = idle && off == 0 && streams_note(g->streams, ino, &range);
	if (off + r->len == r->size)
		due = guess_near_note(g, r, waited);
	/* In a stream the neighbours are read ahead anyway, and its marks must not
	 * be. */
	if ((due == GUESS_NOW || (due == GUESS_IDLE && idle && !in_stream)) &&
	    guess_submit_job(g, ino, none))
		guess_near_begin(g, r);
	if (range.n)
		guess_submit_job(g, ino, range);
}

bool guess_is_in_order(const struct guess *g, uint64_t ino)
{
	return streams_has(g->streams, ino);
}

void guess_set_cores(struct guess *g, unsigned cores)
{
	idle_set_cores(g->idle, cores);
}

void guess_drain(struct guess *g)
{
	pool_drain(g->pool);
}

int guess_new(struct guess **out, struct fs *fs, struct room *room,
	      readahead_fn *ask, void *ctx, struct error *err)
{
	struct guess *g = calloc(1, sizeof *g);
	int r = 0;

	*out = NULL;
	if (!g)
		return error_no_memory(err, "reading files ahead");
	g->fs = fs;
	g->room = room;
	g->ask = ask;
	g->ctx = ctx;
	g->idle = idle_new();
	g->streams = streams_new();
	if (!g->idle || !g->streams)
		r = error_no_memory(err, "reading files ahead");
	if (r == 0)
		r = pool_new(&g->pool, "guess", 1, JOBS, err);
	if (r < 0) {
		guess_free(g);
		return r;
	}
	*out = g;
	return 0;
}

void guess_free(struct guess *g)
{
	if (!g)
		return;
	atomic_store(&g->stop, true);
	pool_free(g->pool);
	streams_free(g->streams);
	idle_free(g->idle);
	free(g);
}
