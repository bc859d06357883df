/* SPDX-License-Identifier: BSD-2-Clause */
/* Every chunk of every stream, by all threads. */

/*
 * Chunks are handed out part by part: those that begin in a tile of the part, a few
 * hundred at a time, so that a thread asks for many locations at once, and that parts
 * become superfluous one after the other.  Then, for what begins in no box, all chunks
 * that nobody has had.  A bit for each says who has: tiles may overlap.
 *
 * One thread coordinates: it shows progress, and from time to time commits what the
 * others have done (tensors/merge/commit.c) while they go on.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/pool.h"
#include "tensors/merge/bits.h"

/* Chunks that a thread takes at once. */
#define TAKE 256
#define SWEEP 4096
/* A commit costs syncs of two files; so much is lost at most when we are killed. */
#define COMMIT_BYTES (UINT64_C(256) << 20)
#define COMMIT_SECONDS 2.0
#define LOOK_NS 50000000

struct job {
	size_t stream;
	bool sweep; /* numbers of the grid, else of the range */
	struct chunk_range range;
	uint64_t first, n;
};
struct work {
	struct merge *m;
	struct merge_pool *buffers;
	struct merge_counts counts;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t news;
	unsigned running;
	size_t stream;
	uint32_t tile;
	struct job job;       /* what is left of it */
	uint64_t limit;       /* bytes to commit after */
	uint64_t uncommitted; /* bytes, about; merge's lock */
};

/* ---- what there is to do ------------------------------------------------- */

static uint32_t tiles_of(const struct stream *s)
{
	return s->t->mosaic ? mosaic_count(s->t->mosaic) : 1;
}

static void open_tile(struct work *w, struct stream *s)
{
	struct box b;

	w->job = (struct job){.stream = w->stream};
	/* Part by part. */
	if (merge_tile_box(s->t, s->tile[w->tile], &b)) {
		chunk_range_init(&w->job.range, &s->grid, &b, true);
		w->job.n = w->job.range.count;
	}
	w->tile++;
}

/* The next few chunks; false: all are given out. */
static bool next_job(struct work *w, struct job *out)
{
	struct merge *m = w->m;
	lock_scope(&w->lock);

	for (;;) {
		struct stream *s;

		if (w->job.n) {
			*out = w->job;
			out->n = min_u64(w->job.n, w->job.sweep ? SWEEP : TAKE);
			w->job.first += out->n;
			w->job.n -= out->n;
			return true;
		}
		if (w->stream == m->streams.n)
			return false;
		s = &m->streams.at[w->stream];
		if (w->tile < tiles_of(s)) {
			open_tile(w, s);
		} else {
			w->job = (struct job){.stream = w->stream++,
					      .sweep = true,
					      .n = s->grid.count};
			w->tile = 0;
		}
	}
}

/* ---- a thread ------------------------------------------------------------ */

/* A chunk, or (len 0) c->pos of them that there are none of. */
static uint64_t chunks_bytes(const struct stream *s,
			     const struct build_chunk *c)
{
	return s->grid.chunk_bytes * (c->len ? 1 : c->pos);
}

static int add_chunk(struct work *w, size_t stream, const struct build_chunk *c,
		     struct error *err)
{
	struct merge *m = w->m;
	const struct journal_chunk x = {(uint32_t)stream, *c};
	lock_scope(&m->lock);

	m->bytes_done += chunks_bytes(&m->streams.at[stream], c);
	if (m->rehearsal)
		return 0;
	w->uncommitted += c->len;
	if (w->uncommitted >= w->limit)
		pthread_cond_signal(&w->news);
	return vec_push(&m->j.chunks, x) ? 0 : merge_no_memory(err);
}

/* Chunks that there are none of, one after the other, are one entry. */
static int add_to_run(struct work *w, size_t stream,
		      const struct build_chunk *c, struct build_chunk *run,
		      struct error *err)
{
	int r = 0;

	if (run->pos && (c->len || run->number + run->pos != c->number)) {
		r = add_chunk(w, stream, run, err);
		run->pos = 0;
	}
	if (r < 0 || c->len)
		return r < 0 ? r : add_chunk(w, stream, c, err);
	if (!run->pos)
		*run = (struct build_chunk){.number = c->number};
	run->pos++;
	return 0;
}

static int do_job(struct work *w, struct merge_worker *me,
		  const struct job *job, struct error *err)
{
	struct stream *s = &w->m->streams.at[job->stream];
	struct build_chunk c, run = {.pos = 0};
	int r = 0;

	for (uint64_t i = job->first;
	     i < job->first + job->n && r == 0 && !merge_stopped(w->m); i++) {
		uint64_t number =
			job->sweep ? i
				   : chunk_range_at(&job->range, &s->grid, i);

		if (!bits_claim(s->claimed, number))
			continue;
		r = merge_chunk(me, (uint32_t)job->stream, number, &c, err);
		if (r == 0)
			r = add_to_run(w, job->stream, &c, &run, err);
	}
	if (r == 0 && run.pos)
		r = add_chunk(w, job->stream, &run, err);
	return r;
}

static void fail(struct merge *m, const struct error *err)
{
	lock_scope(&m->lock);

	if (!m->failure.code)
		m->failure = *err;
	atomic_store(&m->failed, true);
}

static void thread_main(void *arg)
{
	struct work *w = arg;
	struct merge_worker *me = calloc(1, sizeof *me);
	struct error err = {.code = 0};
	struct job job;

	if (!me) {
		merge_no_memory(&err);
		fail(w->m, &err);
	} else {
		me->m = w->m;
		me->pool = w->buffers;
		me->counts = &w->counts;
	}
	while (me && !merge_stopped(w->m) && next_job(w, &job))
		if (do_job(w, me, &job, &err) < 0)
			fail(w->m, &err);
	free(me);
	lock_scope(&w->lock);
	w->running--;
	pthread_cond_signal(&w->news);
}

/* ---- the coordinator ----------------------------------------------------- */

/* Wait a little; false: no thread is left. */
static bool wait_a_little(struct work *w)
{
	struct timespec until = clock_after(LOOK_NS);
	lock_scope(&w->lock);

	if (w->running)
		pthread_cond_timedwait(&w->news, &w->lock, &until);
	return w->running > 0;
}

/* For tests: commit at once, whatever it costs. */
static uint64_t commit_bytes(void)
{
	const char *text = getenv("TENSORFS_MERGE_COMMIT");

	return text ? strtoull(text, NULL, 10) : COMMIT_BYTES;
}

static int commit_now(struct work *w, struct error *err)
{
	struct merge *m = w->m;

	pthread_mutex_lock(&m->lock);
	w->uncommitted = 0;
	pthread_mutex_unlock(&m->lock);
	return m->o.delete_parts && !m->rehearsal ? merge_commit(m, err) : 0;
}

static int coordinate(struct work *w, struct error *err)
{
	struct merge *m = w->m;
	double last = clock_seconds();
	bool running = true;
	int r = 0;

	while (running) {
		uint64_t done, waiting;

		running = wait_a_little(w);
		pthread_mutex_lock(&m->lock);
		done = m->bytes_done;
		waiting = w->uncommitted;
		pthread_mutex_unlock(&m->lock);
		if (m->o.progress)
			m->o.progress(m->o.ctx,
				      m->rehearsal ? "checked" : "merged", done,
				      m->bytes_all);
		if (running && r == 0 &&
		    (waiting >= w->limit ||
		     clock_seconds() - last > COMMIT_SECONDS)) {
			r = commit_now(w, err);
			last = clock_seconds();
			if (r < 0)
				fail(m, err);
		}
	}
	return r < 0 ? r : commit_now(w, err);
}

static int run(struct work *w, struct error *err)
{
	struct merge *m = w->m;
	unsigned n = m->o.jobs > m->o.threads ? m->o.jobs : m->o.threads;
	struct pool *pool;
	int r = pool_new(&pool, "merge", n, n, err);

	if (r < 0)
		return r;
	w->running = n;
	for (unsigned i = 0; i < n; i++)
		pool_submit(pool, thread_main, w);
	r = coordinate(w, err);
	pool_free(pool);
	if (m->failure.code) {
		*err = m->failure;
		return err->code;
	}
	return r == 0 && *m->o.stop ? error_set(err, -EINTR, "interrupted") : r;
}

/* ---- all of it ----------------------------------------------------------- */

static void init_cond(struct work *w)
{
	pthread_condattr_t a;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&w->news, &a);
	pthread_condattr_destroy(&a);
}

/* What an earlier attempt has is not asked for again. */
static int claim_safe(struct merge *m, struct error *err)
{
	for (size_t i = 0; i < m->streams.n; i++) {
		struct stream *s = &m->streams.at[i];
		size_t n = bits_words(s->grid.count);

		m->bytes_all += s->grid.count * s->grid.chunk_bytes;
		s->claimed = calloc(n, sizeof *s->claimed);
		if (!s->safe)
			s->safe = calloc(n, sizeof *s->safe);
		if (!s->claimed || !s->safe)
			return merge_no_memory(err);
		for (size_t k = 0; k < n; k++)
			s->claimed[k] = s->safe[k];
	}
	for (size_t i = 0; i < m->j.chunks.n; i++) {
		const struct journal_chunk *c = &m->j.chunks.at[i];

		m->bytes_done +=
			chunks_bytes(&m->streams.at[c->stream], &c->at);
	}
	return 0;
}

int merge_work(struct merge *m, struct error *err)
{
	struct work *w = calloc(1, sizeof *w);
	int r;

	if (!w)
		return merge_no_memory(err);
	w->m = m;
	w->limit = commit_bytes();
	init_cond(w);
	r = claim_safe(m, err);
	if (r == 0)
		r = merge_pool_new(&w->buffers, m, err);
	if (r == 0)
		r = run(w, err);
	m->result->copied = w->counts.copied;
	m->result->encoded = w->counts.encoded;
	m->result->empty = w->counts.empty;
	merge_pool_free(w->buffers);
	pthread_cond_destroy(&w->news);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}

int merge_work_rehearse(struct merge *m, struct error *err)
{
	int r;

	m->rehearsal = true;
	r = merge_work(m, err);
	m->rehearsal = false;
	m->bytes_all = m->bytes_done = 0;
	for (size_t i = 0; i < m->streams.n; i++)
		free((void *)steal_pointer(&m->streams.at[i].claimed));
	return r;
}
