/* SPDX-License-Identifier: BSD-2-Clause */
/* Make every chunk of every stream, with all threads. */

/*
 * Chunks are handed out part by part: those that begin in a tile of the part, a few
 * hundred at a time.  So a thread asks for many locations at once, and parts become
 * superfluous one after the other.  Then all chunks that no thread has taken are handed
 * out, for those that begin in no box.  Tiles may overlap, so a bit for each chunk says
 * whether a thread has taken it.
 *
 * One thread coordinates: it shows progress, and from time to time it commits what the
 * others have done, while they go on.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/pool.h"
#include "formats/hdf5/worker/worker.h"
#include "tensors/merge/private.h"

/* The numbers of chunks that a thread takes at once: from a tile, and from the whole
 * grid. */
#define TAKE 256
#define SWEEP 4096
/* A commit syncs two files.  Work between two commits is lost when the process is killed:
 * at most about this many bytes, or what is written in this many seconds. */
#define COMMIT_BYTES (UINT64_C(256) << 20)
#define COMMIT_SECONDS 2.0
#define LOOK_NS 50000000

/* Set bit i.  Return true if it was not set before: then the chunk is the caller's. */
static inline bool bits_claim(_Atomic uint64_t *bits, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	return !(atomic_fetch_or(&bits[i / 64], bit) & bit);
}

/* A range of chunks of a grid, in C order: those that a box touches, or those whose first
 * element is in the box. */
struct chunk_range {
	uint64_t first[RANK_MAX], n[RANK_MAX], count;
};
struct job {
	size_t stream;
	bool sweep; /* first and n are numbers of the grid, else of the range */
	struct chunk_range range;
	uint64_t first, n;
};
struct work {
	struct merge *m;
	struct merge_pool *buffers;
	struct merge_counts counts;
	pthread_mutex_t lock; /* protects the fields that follow */
	pthread_cond_t news;
	unsigned running;
	size_t stream;
	uint32_t tile;
	struct job job; /* what is left to hand out of the job */
	uint64_t limit; /* bytes after which to commit */
	/* bytes that are not committed, roughly; protected by m->lock */
	uint64_t uncommitted;
};

/* ---- chunks of a box ----------------------------------------------------- */

/* Set *r to the chunks that box `b` touches, or (begin) whose first element is in it. */
static void chunk_range_init(struct chunk_range *r, const struct grid *g,
			     const struct box *b, bool begin)
{
	r->count = 1;
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t end = div_up(b->start[i] + b->count[i], g->chunk[i]);

		r->first[i] = begin ? div_up(b->start[i], g->chunk[i])
				    : b->start[i] / g->chunk[i];
		r->n[i] = b->count[i] && end > r->first[i] ? end - r->first[i]
							   : 0;
		r->count *= r->n[i];
	}
}

static uint64_t chunk_range_at(const struct chunk_range *r,
			       const struct grid *g, uint64_t i)
{
	uint64_t number = 0, step = 1;

	for (unsigned k = g->rank; k-- > 0;) {
		number += (r->first[k] + i % r->n[k]) * step;
		i /= r->n[k];
		step *= g->chunks[k];
	}
	return number;
}

/* Return the number in the grid of chunk i of the range. */
/* ---- what there is to do ------------------------------------------------- */

static uint32_t work_tile_count(const struct stream *s)
{
	return s->t->mosaic ? mosaic_count(s->t->mosaic) : 1;
}

static void work_open_tile(struct work *w, struct stream *s)
{
	struct box b;

	w->job = (struct job){.stream = w->stream};
	/* Tiles are in the order of their parts. */
	if (merge_tile_box(s->t, s->tile[w->tile], &b)) {
		chunk_range_init(&w->job.range, &s->grid, &b, true);
		w->job.n = w->job.range.count;
	}
	w->tile++;
}

/* Set *out to the next few chunks; return false if all are handed out. */
static bool work_next_job(struct work *w, struct job *out)
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
		if (w->tile < work_tile_count(s)) {
			work_open_tile(w, s);
		} else {
			w->job = (struct job){.stream = w->stream++,
					      .sweep = true,
					      .n = s->grid.count};
			w->tile = 0;
		}
	}
}

/* ---- a thread ------------------------------------------------------------ */

/* Return the bytes of a chunk, or (len 0) of c->pos chunks that are not stored. */
static uint64_t chunks_bytes(const struct stream *s,
			     const struct build_chunk *c)
{
	return s->grid.chunk_bytes * (c->len ? 1 : c->pos);
}

static int work_add_chunk(struct work *w, size_t stream,
			  const struct build_chunk *c, struct error *err)
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
	return vec_push(&m->j.chunks, x)
		       ? 0
		       : error_no_memory(err, "the list of chunks");
}

/* Note a finished chunk.  Chunks that are not stored and follow each other become one
 * entry. */
static int work_add_to_run(struct work *w, size_t stream,
			   const struct build_chunk *c, struct build_chunk *run,
			   struct error *err)
{
	int r = 0;

	if (run->pos && (c->len || run->number + run->pos != c->number)) {
		r = work_add_chunk(w, stream, run, err);
		run->pos = 0;
	}
	if (r < 0 || c->len)
		return r < 0 ? r : work_add_chunk(w, stream, c, err);
	if (!run->pos)
		*run = (struct build_chunk){.number = c->number};
	run->pos++;
	return 0;
}

static int work_run_job(struct work *w, struct merge_worker *me,
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
			r = work_add_to_run(w, job->stream, &c, &run, err);
	}
	if (r == 0 && run.pos)
		r = work_add_chunk(w, job->stream, &run, err);
	return r;
}

static void work_fail(struct merge *m, const struct error *err)
{
	lock_scope(&m->lock);

	if (!m->failure.code)
		m->failure = *err;
	atomic_store(&m->failed, true);
}

static void work_thread_main(void *arg)
{
	struct work *w = arg;
	struct merge_worker *me = calloc(1, sizeof *me);
	struct error err = {.code = 0};
	struct job job;

	if (!me) {
		error_no_memory(&err, "a thread that copies chunks");
		work_fail(w->m, &err);
	} else {
		me->m = w->m;
		me->pool = w->buffers;
		me->counts = &w->counts;
	}
	while (me && !merge_stopped(w->m) && work_next_job(w, &job))
		if (work_run_job(w, me, &job, &err) < 0)
			work_fail(w->m, &err);
	free(me);
	lock_scope(&w->lock);
	w->running--;
	pthread_cond_signal(&w->news);
}

/* ---- commits ------------------------------------------------------------- */

/*
 *   chunks in the data file   are synced, then
 *   records in the journal    are synced, then
 *   parts                     are deleted
 *
 * in this order, so that at every moment each element is in a part that exists, or in a
 * chunk that the journal records.  Threads go on meanwhile: only chunks that were in the
 * list before the first sync began are recorded after it.
 */
bool merge_part_is_safe(const struct stream *s, uint32_t p)
{
	struct chunk_range r;
	struct box b;

	if (!s->safe || !s->boxes)
		return false;
	for (uint32_t i = s->first[p]; i < s->first[p + 1]; i++) {
		if (!merge_tile_box(s->t, s->tile[i], &b))
			return false;
		chunk_range_init(&r, &s->grid, &b, false);
		for (uint64_t k = 0; k < r.count; k++)
			if (!bits_get(s->safe, chunk_range_at(&r, &s->grid, k)))
				return false;
	}
	return true;
}

/* Return the number of chunks in the list: their data is written. */
static size_t commit_count_chunks(struct merge *m)
{
	lock_scope(&m->lock);

	return m->j.chunks.n;
}

/* Set *some to the chunks that are not in the journal, and to where their data ends.
 * Behind that, other chunks may be in the making; the file need not be that long after a
 * crash. */
static int commit_list_chunks(struct merge *m, size_t n, struct journal *some,
			      struct error *err)
{
	lock_scope(&m->lock);

	*some = m->j; /* the list may move while this thread writes */
	some->chunks = (__typeof__(some->chunks))VEC_EMPTY;
	for (size_t i = m->written; i < n; i++) {
		const struct journal_chunk *c = &m->j.chunks.at[i];

		if (c->at.len)
			some->end = max_u64(some->end, c->at.pos + c->at.len);
		if (!vec_push(&some->chunks, *c)) {
			vec_free(&some->chunks);
			return error_no_memory(err, "the journal of the merge");
		}
	}
	return 0;
}

static int commit_write_journal(struct merge *m, size_t n, struct error *err)
{
	struct journal some;
	int r = commit_list_chunks(m, n, &some, err);

	if (r < 0)
		return r;
	r = journal_write_chunks(&some, m->lock_fd, 0, some.end, err);
	m->j.whole = some.whole;
	m->j.end = some.end;
	for (size_t i = 0; i < some.chunks.n && r == 0; i++) {
		const struct journal_chunk *c = &some.chunks.at[i];

		for (uint64_t k = 0; k < (c->at.len ? 1 : c->at.pos); k++)
			bits_set(m->streams.at[c->stream].safe,
				 c->at.number + k);
	}
	vec_free(&some.chunks);
	return r;
}

static bool file_is_safe(const struct merge *m, const struct merge_file *f)
{
	for (size_t i = 0; i < f->uses.n; i++) {
		const struct merge_use *u = &f->uses.at[i];

		if (!merge_part_is_safe(&m->streams.at[u->stream], u->part))
			return false;
	}
	return f->uses.n > 0;
}

/* Delete parts whose chunks are all safe.  Their files are closed first, or the disk
 * would not get their room back. */
static int commit_delete_parts(struct merge *m, struct error *err)
{
	uint64_t before = m->result->deleted;
	int r = 0;

	for (size_t i = 0; i < m->files.n && r == 0; i++) {
		struct merge_file *f = &m->files.at[i];

		if (f->gone || f->late || f->kept || !file_is_safe(m, f))
			continue;
		handles_close_idle(m->handles, f->file);
		r = merge_place_delete(m, handles_path(m->handles, f->file),
				       &f->id, err);
		f->gone = r == 0;
	}
	if (m->result->deleted > before)
		hdf5_isolate_let_go();
	return r;
}

static int commit_chunks(struct merge *m, struct error *err)
{
	size_t n = commit_count_chunks(m);
	int r = 0;

	if (n > m->written) {
		if (fdatasync(m->data_fd) < 0)
			return error_errno(err, -errno, "cannot write '%s'",
					   file_shown(m->data_path));
		r = commit_write_journal(m, n, err);
		if (r < 0)
			return r;
		m->written = n;
	}
	return commit_delete_parts(m, err);
}

/* ---- the coordinator ----------------------------------------------------- */

/* Wait for a short time or for news; return false if all worker threads have ended. */
static bool work_wait_for_news(struct work *w)
{
	struct timespec until = clock_after(LOOK_NS);
	lock_scope(&w->lock);

	if (w->running)
		pthread_cond_timedwait(&w->news, &w->lock, &until);
	return w->running > 0;
}

/* Tests set this variable to commit early. */
static uint64_t commit_bytes(void)
{
	const char *text = getenv("TENSORFS_MERGE_COMMIT");

	return text ? strtoull(text, NULL, 10) : COMMIT_BYTES;
}

static int work_commit_now(struct work *w, struct error *err)
{
	struct merge *m = w->m;

	pthread_mutex_lock(&m->lock);
	w->uncommitted = 0;
	pthread_mutex_unlock(&m->lock);
	return m->o.delete_parts && !m->rehearsal ? commit_chunks(m, err) : 0;
}

static int work_coordinate(struct work *w, struct error *err)
{
	struct merge *m = w->m;
	double last = clock_seconds();
	bool running = true;
	int r = 0;

	while (running) {
		uint64_t done, waiting;

		running = work_wait_for_news(w);
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
			r = work_commit_now(w, err);
			last = clock_seconds();
			if (r < 0)
				work_fail(m, err);
		}
	}
	return r < 0 ? r : work_commit_now(w, err);
}

static int work_run_threads(struct work *w, struct error *err)
{
	struct merge *m = w->m;
	unsigned n = m->o.jobs > m->o.threads ? m->o.jobs : m->o.threads;
	struct pool *pool;
	int r = pool_new(&pool, "merge", n, n, err);

	if (r < 0)
		return r;
	w->running = n;
	for (unsigned i = 0; i < n; i++)
		pool_submit(pool, work_thread_main, w);
	r = work_coordinate(w, err);
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

/* Mark the chunks that an earlier attempt has made as taken. */
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
			return error_no_memory(err,
					       "the table of finished chunks");
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
		return error_no_memory(err, "the merge");
	w->m = m;
	w->limit = commit_bytes();
	init_cond(w);
	r = claim_safe(m, err);
	if (r == 0)
		r = merge_pool_new(&w->buffers, m, err);
	if (r == 0)
		r = work_run_threads(w, err);
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
