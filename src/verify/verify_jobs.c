/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs of `verify`: chunks, bytes and values of one part. */

/*
 * Chunks are found by the places of the grid, or by the index.  A small or dense grid is
 * gone through place by place, a thousand in a job.  A sparse grid may have 10^9 places
 * and three chunks: there the source lists the chunks that were written, a million at a
 * time.  In both cases the number of chunks that were found must be the number that the
 * index counts.
 *
 * Bytes that have no chunk index may be vast, too, and a hole of their file: the file
 * system is asked where data follow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "verify/verify_private.h"

#define SEGMENT TENSOR_SEGMENT
#define LIST_ROOM (UINT32_C(1) << 20)
#define VALUES 4096 /* values at a time, but whole rows */
#define PIECE (UINT64_C(64) << 20)
#define READ_BYTES (UINT64_C(1) << 20)

struct job {
	struct part_check *check;
	uint32_t file;     /* the file that bytes are read from */
	uint64_t first, n; /* a range of chunks, bytes or rows */
	bool listed;       /* the job is the `n` chunks in `at` */
	struct written at[];
};

void verify_advance(struct verify *v, uint64_t bytes)
{
	uint64_t done = atomic_fetch_add(&v->done, bytes) + bytes;

	if (pthread_mutex_trylock(&v->lock))
		return;
	progress_update(&v->progress, min_u64(done, v->progress.total));
	pthread_mutex_unlock(&v->lock);
}

/* Note chunks that need not be looked at. */
static void verify_leave_out(struct part_check *c, uint64_t chunks)
{
	struct progress *p = &c->v->progress;
	uint64_t bytes;

	lock_scope(&c->v->lock);
	atomic_fetch_add(&c->v->unwritten, chunks);
	if (mul_overflows(chunks, c->layout->grid->chunk_bytes, &bytes))
		bytes = p->total;
	p->total -= min_u64(bytes, p->total);
}

/* ---- chunks -------------------------------------------------------------- */

static void verify_check_chunk(struct part_check *c, uint64_t chunk,
			       const struct buf *segment)
{
	uint64_t id = tensor_chunk_id(c->part, chunk), size = 0, stored = 0;
	uint64_t cost;
	struct verify *v = c->v;
	struct error err = {0};
	char name[512];
	int r;

	if (mul_overflows(c->layout->grid->chunk_bytes, 3, &cost))
		cost = UINT64_MAX / 2;
	gate_enter(&v->gate, cost);
	r = store_check_chunk(v->store, &c->t->set, id, segment, &size, &stored,
			      &err);
	gate_leave(&v->gate, cost);
	atomic_fetch_add(&v->chunks, 1);
	atomic_fetch_add(&v->decoded, size);
	atomic_fetch_add(&v->stored, stored);
	if (r == -ENODATA || r == -ESTALE || r == -ENOTSUP) {
		verify_spoil(c, r, &err);
	} else if (r < 0) {
		c->t->set.ops->describe(&c->t->set, id, name, sizeof name);
		verify_bad(v, name, r, err.text);
	}
}

/* Note that a chunk was read which was stored without the filters of `mask`. */
static void note_chunk(struct part_check *c, uint64_t chunk, uint64_t mask)
{
	const struct layout *l = c->layout;
	bool raw = l->raw_edges && grid_is_partial(l->grid, chunk);

	atomic_store(&c->read, true);
	if (l->pipeline->n &&
	    (raw || !pipeline_has_checksum(l->pipeline, (uint32_t)mask)))
		atomic_store(&c->unsummed, true);
}

/* Check a chunk whose position is known; `segment` is room to pass the position in. */
static void check_located(struct part_check *c, uint64_t chunk,
			  const struct location *at, struct buf *segment)
{
	struct location *slots = (void *)segment->data;

	if (at->pos == UINT64_MAX) {
		atomic_fetch_add(&c->v->unwritten, 1);
	} else {
		slots[chunk % SEGMENT] = *at;
		verify_check_chunk(c, chunk, segment);
		note_chunk(c, chunk, at->mask);
		atomic_fetch_add(&c->found, 1);
	}
	verify_advance(c->v, c->layout->grid->chunk_bytes);
}

static int locate_chunks(const struct job *job, struct buf *segment,
			 struct error *err)
{
	struct part_check *c = job->check;
	struct location at[SEGMENT];
	int r = c->t->ops->locate(c->t, c->part, c->layout, job->first,
				  (uint32_t)job->n, at, err);

	for (uint32_t i = 0; i < job->n && !r; i++)
		if (!atomic_load(&c->spoiled))
			check_located(c, job->first + i, &at[i], segment);
	return r;
}

static void run_chunks(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	struct buf *segment = buf_new(SEGMENT * sizeof(struct location), NULL);
	struct error err = {0};
	int r = segment ? 0
			: error_no_memory(&err, "a table of chunk positions");

	if (!r && !job->listed && !atomic_load(&c->spoiled))
		r = locate_chunks(job, segment, &err);
	for (uint64_t i = 0; job->listed && i < job->n && !r; i++)
		if (!atomic_load(&c->spoiled))
			check_located(c, job->at[i].chunk, &job->at[i].at,
				      segment);
	if (r < 0)
		verify_spoil(c, r, &err);
	buf_unref(segment);
	verify_part_unref(c);
	free(job);
}

/* Check chunks that libhdf5 reads, where there are any. */
static void run_fetches(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	struct location at[SEGMENT];
	struct error err = {0};
	int r = 0;

	memset(at, 0, sizeof at);
	/* without an index every chunk exists */
	if (c->layout->indexed && !atomic_load(&c->spoiled))
		r = c->t->ops->locate(c->t, c->part, c->layout, job->first,
				      (uint32_t)job->n, at, &err);
	if (r < 0)
		verify_spoil(c, r, &err);
	for (uint64_t i = 0; i < job->n && !atomic_load(&c->spoiled); i++) {
		bool is = at[i].pos != UINT64_MAX;

		atomic_fetch_add(is ? &c->found : &c->v->unwritten, 1);
		if (is) {
			verify_check_chunk(c, job->first + i, NULL);
			note_chunk(c, job->first + i, at[i].mask);
		}
		verify_advance(c->v, c->layout->grid->chunk_bytes);
	}
	verify_part_unref(c);
	free(job);
}

/* ---- bytes and values ---------------------------------------------------- */

/* Contiguous bytes have no checksum: all that can be checked is that they can be read. */
static void run_bytes(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	cleanup_free void *buf = malloc(READ_BYTES);
	struct error err = {0};
	uint64_t done = 0;
	int r = buf ? 0 : error_no_memory(&err, "a buffer of contiguous data");

	while (r == 0 && done < job->n && !atomic_load(&c->spoiled)) {
		struct handles *h = c->t->handles;
		uint64_t pos = job->first + done;
		uint64_t n = handles_length_before(h, job->file, pos,
						   job->n - done, SEEK_DATA);

		if (!n) {
			n = min_u64(job->n - done, READ_BYTES);
			r = handles_read(h, job->file, pos, buf, n, &err);
		}
		if (r < 0)
			break;
		done += n;
		atomic_store(&c->read, true);
		atomic_fetch_add(&c->v->stored, n);
		atomic_fetch_add(&c->v->decoded, n);
		verify_advance(c->v, n);
	}
	if (r < 0)
		verify_spoil(c, r, &err);
	verify_part_unref(c);
	free(job);
}

static void count_value(void *ctx, const char *s, size_t len)
{
	(void)s;
	*(uint64_t *)ctx += len;
}

/* Return the number of values that make a few MiB. */
static uint64_t value_batch(const struct tensor *t)
{
	return t->text_bytes
		       ? min_u64(VALUES, max_u64(1, (4 << 20) / t->text_bytes))
		       : VALUES / 8;
}

static void verify_check_values(struct part_check *c, const struct box *b)
{
	struct error err = {0};
	uint64_t bytes = 0;
	int r = c->t->ops->values(c->t, c->part, b, count_value, &bytes, &err);

	atomic_fetch_add(&c->v->decoded, bytes);
	if (bytes)
		atomic_store(&c->read, true);
	if (r < 0)
		verify_spoil(c, r, &err);
	verify_advance(c->v, 0);
}

/* Check the rows of a box, some at a time; a scalar has one value. */
static void verify_check_rows(struct part_check *c, const struct box *all)
{
	unsigned rank = c->layout->grid->rank;
	struct box b = *all;
	uint64_t row = 1, step;

	for (unsigned i = 1; i < rank; i++)
		row *= max_u64(b.count[i], 1);
	step = max_u64(1, value_batch(c->t) / row);
	if (!rank)
		verify_check_values(c, &b);
	for (uint64_t i = 0; rank && i < all->count[0]; i += step) {
		if (atomic_load(&c->spoiled))
			return;
		b.start[0] = all->start[0] + i;
		b.count[0] = min_u64(all->count[0] - i, step);
		verify_check_values(c, &b);
	}
}

static void run_values(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	const struct grid *g = c->layout->grid;
	struct box b;

	for (uint64_t i = 0; i < (job->listed ? job->n : 1); i++) {
		memset(&b, 0, sizeof b);
		if (job->listed)
			grid_origin(g, job->at[i].chunk, b.start);
		for (unsigned k = 0; k < g->rank; k++)
			b.count[k] = job->listed
					     ? min_u64(g->chunk[k],
						       g->shape[k] - b.start[k])
					     : g->shape[k];
		if (!job->listed && g->rank) {
			b.start[0] = job->first;
			b.count[0] = job->n;
		}
		verify_check_rows(c, &b);
		atomic_fetch_add(&c->found, job->listed);
	}
	verify_part_unref(c);
	free(job);
}

/* ---- queueing ------------------------------------------------------------ */

static int submit_job(struct job *job, struct part_check *c, pool_fn *fn)
{
	if (!job)
		return -ENOMEM;
	job->check = c;
	atomic_fetch_add(&c->refs, 1);
	pool_submit(c->v->pool, fn, job);
	return 0;
}

static int verify_submit(struct part_check *c, pool_fn *fn, uint32_t file,
			 uint64_t first, uint64_t n)
{
	struct job *job = malloc(sizeof *job);

	if (job)
		*job = (struct job){.file = file, .first = first, .n = n};
	return submit_job(job, c, fn);
}

static int submit_listed(struct part_check *c, pool_fn *fn,
			 const struct written *at, uint64_t n)
{
	struct job *job = malloc(sizeof *job + n * sizeof *at);

	if (job) {
		*job = (struct job){.n = n, .listed = true};
		memcpy(job->at, at, n * sizeof *at);
	}
	return submit_job(job, c, fn);
}

static int submit_file(struct part_check *c, uint32_t file, uint64_t pos,
		       uint64_t n)
{
	int r = 0;

	while (n && r == 0 && !atomic_load(&c->spoiled)) {
		uint64_t piece = min_u64(n, PIECE);

		r = verify_submit(c, run_bytes, file, pos, piece);
		pos += piece;
		n -= piece;
	}
	return r;
}

/* Queue contiguous bytes, in one file or in stretches of several. */
static int submit_bytes(struct part_check *c)
{
	const struct layout *l = c->layout;
	uint64_t first, end;
	int r = 0;

	report_bytes(&c->rows, l, &first, &end);
	if (!l->nstretches)
		return submit_file(c, l->file, l->pos + first, end - first);
	for (uint32_t i = 0; i < l->nstretches && r == 0; i++) {
		const struct stretch *s = &l->stretches[i];
		uint64_t from = max_u64(first, s->begin);
		uint64_t to = min_u64(end, s->begin + s->len);

		if (from < to)
			r = submit_file(c, s->file, s->pos + (from - s->begin),
					to - from);
	}
	return r;
}

/* ---- grids --------------------------------------------------------------- */

/* Queue the chunks of a list that are before `end`, and add their number to *done. */
static int submit_list(struct part_check *c, pool_fn *fn,
		       const struct written *at, uint64_t n, uint64_t end,
		       uint64_t *done)
{
	int r = 0;

	while (n && at[n - 1].chunk >= end)
		n--;
	for (uint64_t i = 0; i < n && !r && !atomic_load(&c->spoiled);
	     i += SEGMENT)
		r = submit_listed(c, fn, at + i, min_u64(n - i, SEGMENT));
	*done += n;
	return r;
}

/* Queue one job for chunks that are adjacent in the file; it reads them as one range. */
static int submit_row(struct part_check *c, pool_fn *fn,
		      const struct location *at, uint64_t first, uint64_t end)
{
	const struct layout *l = c->layout;

	if (l->pipeline->n || l->by_library || fn != run_chunks)
		return -ENOTSUP;
	atomic_fetch_add(&c->v->chunks, end - first);
	return submit_file(c, l->file, at->pos + first * at->stored,
			   (end - first) * at->stored);
}

/* Queue the chunks of [first, end) that were written.  -ENOTSUP: all have to be gone
 * through. */
static int submit_written(struct part_check *c, pool_fn *fn, uint64_t first,
			  uint64_t end)
{
	cleanup_free struct written *at = NULL;
	uint64_t from = first, done = 0;
	struct error err = {0};
	uint32_t n = 0;
	int r = 0;

	if (end - first < REPORT_LIST || !c->t->ops->list)
		return -ENOTSUP;
	at = malloc(LIST_ROOM * sizeof *at);
	if (!at)
		return -ENOMEM;
	while (from < end && !r && !atomic_load(&c->spoiled)) {
		bool again = from > first;

		r = c->t->ops->list(c->t, c->part, c->layout, &from, at,
				    LIST_ROOM, &n, &err);
		if (r == 1)
			return submit_row(c, fn, &at->at, first, end);
		if (r == -ENOTSUP && !again)
			return r;
		if (r == -ENOTSUP)
			r = error_set(
				&err, -EIO,
				"its chunk index changed while it was read");
		if (r < 0)
			verify_spoil(c, r, &err);
		else
			r = submit_list(c, fn, at, n, end, &done);
	}
	c->whole = first == 0 && end == c->layout->grid->count;
	verify_leave_out(c, end - first - done);
	return r == -ENOMEM ? r : 0;
}

static int submit_chunks(struct part_check *c)
{
	pool_fn *fn = c->layout->by_library ? run_fetches : run_chunks;
	uint64_t first, end;
	int r;

	report_chunks(&c->rows, c->layout, &first, &end);
	r = submit_written(c, run_chunks, first, end);
	if (r != -ENOTSUP)
		return r;
	c->whole = fn == run_chunks && !first && end == c->layout->grid->count;
	for (r = 0; first < end && !r && !atomic_load(&c->spoiled);) {
		uint64_t n = min_u64(end - first, SEGMENT);
		uint64_t written = atomic_load(&c->t->parts[c->part].written);

		/* When the number of chunks that the index counts was found, the rest is
		 * unwritten. */
		if (written && atomic_load(&c->found) + 1 >= written) {
			verify_leave_out(c, end - first);
			break;
		}
		r = verify_submit(c, fn, 0, first, n);
		first += n;
	}
	return r;
}

static int submit_values(struct part_check *c)
{
	const struct grid *g = c->layout->grid;
	uint64_t begin, end;
	int r = -ENOTSUP;

	if (!c->t->ops->values || !g || !g->count)
		return 0;
	if (c->layout->kind == LAYOUT_CHUNKED) {
		report_chunks(&c->rows, c->layout, &begin, &end);
		r = submit_written(c, run_values, begin, end);
	}
	if (r != -ENOTSUP)
		return r;
	end = g->rank ? min_u64(c->rows.end, g->shape[0]) : 1;
	begin = g->rank ? min_u64(c->rows.begin, end) : 0;
	return begin < end ? verify_submit(c, run_values, 0, begin, end - begin)
			   : 0;
}

int verify_queue_part(struct part_check *c)
{
	if (!dtype_is_binary(&c->t->dtype))
		return submit_values(c);
	switch (c->layout->kind) {
	case LAYOUT_CHUNKED:
		return submit_chunks(c);
	case LAYOUT_LINEAR:
		return submit_bytes(c);
	case LAYOUT_FETCHED:
		verify_check_chunk(c, 0, NULL);
		atomic_store(&c->read, true);
		break;
	case LAYOUT_ABSENT:
	case LAYOUT_NESTED:
		break;
	}
	return 0;
}
