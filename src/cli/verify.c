/* SPDX-License-Identifier: BSD-2-Clause */
/* Read and decode every stored chunk once, on all cores, in bounded memory. */

/*
 * The main thread goes through tensors and parts and queues jobs: a segment of
 * 1024 chunks, a piece of contiguous data, the strings of a part.  A job finds
 * its chunks itself and decodes them one after the other, past the cache.  The
 * queue is short and a gate bounds what is being decoded, so the size of the
 * data does not matter.
 *
 * A file that is missing or was replaced spoils all chunks in it; it is listed
 * once, and the other jobs of that part see `spoiled` and leave.
 */
#include "cli/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"
#include "cli/report.h"

#define SEGMENT 1024
#define STRINGS 4096 /* at a time, but whole rows */
#define PIECE (UINT64_C(64) << 20)
#define READ_BYTES (UINT64_C(1) << 20)

struct part_check {
	struct verify *v;
	struct tensor *t;
	uint32_t part;
	const struct layout *layout;
	_Atomic unsigned refs; /* jobs, and the main thread */
	_Atomic bool spoiled;
	_Atomic uint64_t found; /* chunks that the index has */
};
struct job {
	struct part_check *check;
	uint64_t first, n; /* chunks, bytes or strings */
};

void verify_bad(struct verify *v, const char *name, int code, const char *why)
{
	lock_scope(&v->lock);
	progress_clear(&v->progress);
	if (code == -ENOMEM)
		v->out_of_memory = true;
	if (v->settings->json) {
		printf("%s\n{\"name\": ", v->bad ? "," : "");
		cli_json_string(stdout, name);
		printf(", \"error\": \"%s\", \"sentence\": ", error_name(code));
		cli_json_string(stdout, why);
		putchar('}');
	} else if (!strncmp(why, name, strlen(name))) {
		printf("bad: %s\n", why);
	} else {
		printf("bad: %s: %s\n", name, why);
	}
	fflush(stdout);
	v->bad++;
}

static void advance(struct verify *v, uint64_t bytes)
{
	uint64_t done = atomic_fetch_add(&v->done, bytes) + bytes;

	if (pthread_mutex_trylock(&v->lock))
		return;
	progress_update(&v->progress, min_u64(done, v->progress.total));
	pthread_mutex_unlock(&v->lock);
}

static void check_put(struct part_check *c)
{
	if (atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
}

static void part_name(const struct tensor *t, uint32_t p, char *buf, size_t n)
{
	if (t->distributed)
		snprintf(buf, n, "%s rows %" PRIu64 " to %" PRIu64, t->name,
			 t->parts[p].begin, t->parts[p].end);
	else
		snprintf(buf, n, "%s", t->name);
}

/* Something that concerns the whole part: say it once. */
static void spoil(struct part_check *c, int code, const struct error *err)
{
	char name[512];

	if (atomic_exchange(&c->spoiled, true))
		return;
	part_name(c->t, c->part, name, sizeof name);
	verify_bad(c->v, name, code, err->text);
}

static void check_chunk(struct part_check *c, uint64_t chunk)
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
	r = store_check_chunk(v->store, &c->t->set, id, &size, &stored, &err);
	gate_leave(&v->gate, cost);
	atomic_fetch_add(&v->chunks, 1);
	atomic_fetch_add(&v->decoded, size);
	atomic_fetch_add(&v->stored, stored);
	if (r == -ENODATA || r == -ESTALE || r == -ENOTSUP) {
		spoil(c, r, &err);
	} else if (r < 0) {
		c->t->set.ops->describe(&c->t->set, id, name, sizeof name);
		verify_bad(v, name, r, err.text);
	}
}

static void run_chunks(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	struct location at[SEGMENT];
	struct error err = {0};
	int r = 0;

	if (!atomic_load(&c->spoiled))
		r = c->t->ops->locate(c->t, c->part, c->layout, job->first,
				      (uint32_t)job->n, at, &err);
	if (r < 0)
		spoil(c, r, &err);
	for (uint32_t i = 0; i < job->n && !atomic_load(&c->spoiled); i++) {
		if (at[i].pos == UINT64_MAX)
			atomic_fetch_add(&c->v->unwritten, 1);
		else
			check_chunk(c, job->first + i);
		atomic_fetch_add(&c->found, at[i].pos != UINT64_MAX);
		advance(c->v, c->layout->grid->chunk_bytes);
	}
	check_put(c);
	free(job);
}

/* Contiguous bytes have no checksum: that they can be read is all there is. */
static void run_bytes(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	cleanup_free void *buf = malloc(READ_BYTES);
	struct error err = {0};
	uint64_t done = 0;
	int r = buf ? 0 : error_set(&err, -ENOMEM, "out of memory");

	while (r == 0 && done < job->n && !atomic_load(&c->spoiled)) {
		uint64_t n = min_u64(job->n - done, READ_BYTES);

		r = handles_read(c->t->handles, c->layout->file,
				 job->first + done, buf, n, &err);
		if (r < 0)
			break;
		done += n;
		atomic_fetch_add(&c->v->stored, n);
		atomic_fetch_add(&c->v->decoded, n);
		advance(c->v, n);
	}
	if (r < 0)
		spoil(c, r, &err);
	check_put(c);
	free(job);
}

static void count_string(void *ctx, const char *s, size_t len)
{
	(void)s;
	*(uint64_t *)ctx += len;
}

/* As many as make a few MiB. */
static uint64_t string_batch(const struct tensor *t)
{
	return t->text_bytes ? min_u64(STRINGS, (4 << 20) / t->text_bytes)
			     : STRINGS / 8;
}

static void run_strings(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	uint64_t row = 1, step;

	for (unsigned i = 1; i < c->t->rank; i++)
		row *= c->t->shape[i];
	step = max_u64(1, string_batch(c->t) / row) * row;
	for (uint64_t i = 0; i < job->n && !atomic_load(&c->spoiled);
	     i += step) {
		struct error err = {0};
		uint64_t bytes = 0;
		int r = c->t->ops->strings(c->t, c->part, job->first + i,
					   min_u64(job->n - i, step),
					   count_string, &bytes, &err);

		atomic_fetch_add(&c->v->decoded, bytes);
		if (r < 0)
			spoil(c, r, &err);
		advance(c->v, 0);
	}
	check_put(c);
	free(job);
}

static int submit(struct part_check *c, pool_fn *fn, uint64_t first, uint64_t n)
{
	struct job *job = malloc(sizeof *job);

	if (!job)
		return -ENOMEM;
	job->check = c;
	job->first = first;
	job->n = n;
	atomic_fetch_add(&c->refs, 1);
	pool_submit(c->v->pool, fn, job);
	return 0;
}

/* Queue [first, end) in pieces of `step`. */
static int submit_range(struct part_check *c, pool_fn *fn, uint64_t first,
			uint64_t end, uint64_t step)
{
	int r = 0;

	while (first < end && r == 0 && !atomic_load(&c->spoiled)) {
		uint64_t n = min_u64(end - first, step);
		uint64_t written = atomic_load(&c->t->parts[c->part].written);

		/* A grid may be vast and all but empty: when as many chunks
		 * were found as the index counts, the rest is unwritten. */
		if (written && atomic_load(&c->found) + 1 >= written) {
			atomic_fetch_add(&c->v->unwritten, end - first);
			break;
		}

		r = submit(c, fn, first, n);
		first += n;
	}
	return r;
}

static int submit_strings(struct part_check *c)
{
	const struct tensor *t = c->t;
	uint64_t n = 1;

	if (t->rank)
		n = t->parts[c->part].end - t->parts[c->part].begin;
	/* A part has no more elements than the tensor, whose number fits. */
	for (unsigned i = 1; i < t->rank; i++)
		n *= t->shape[i];
	return n && t->ops->strings ? submit(c, run_strings, 0, n) : 0;
}

static int submit_part(struct part_check *c)
{
	const struct layout *l = NULL;
	struct error err = {0};
	uint64_t first, end;
	int r = report_part(c->t, c->part, &l, &err);

	if (r < 0) {
		spoil(c, r, &err);
		return 0;
	}
	c->layout = l;
	if (c->t->dtype.kind == DTYPE_STRING)
		return submit_strings(c);
	switch (l->kind) {
	case LAYOUT_CHUNKED:
		report_chunks(c->t, c->part, l, &first, &end);
		return submit_range(c, run_chunks, first, end, SEGMENT);
	case LAYOUT_LINEAR:
		report_bytes(c->t, c->part, l, &first, &end);
		return submit_range(c, run_bytes, first, first + end, PIECE);
	case LAYOUT_FETCHED:
		check_chunk(c, 0);
		break;
	case LAYOUT_ABSENT:
		break;
	}
	return 0;
}

int verify_tensor(void *ctx, struct tensor *t)
{
	struct verify *v = ctx;
	int r = 0;

	if (t->why_not) {
		v->skipped++;
		if (!v->settings->json && !v->settings->quiet) {
			lock_scope(&v->lock);
			progress_clear(&v->progress);
			printf("not checked: %s: %s\n", t->name, t->why_not);
		}
		return 0;
	}
	v->tensors++;
	for (uint32_t p = 0; p < t->nparts && r == 0; p++) {
		struct part_check *c = calloc(1, sizeof *c);

		if (!c)
			return -ENOMEM;
		c->v = v;
		c->t = t;
		c->part = p;
		atomic_init(&c->refs, 1);
		r = submit_part(c);
		check_put(c);
	}
	return r;
}

int verify_init(struct verify *v, const struct settings *s, struct store *store,
		uint64_t total, struct error *err)
{
	unsigned cores = system_cores();

	memset(v, 0, sizeof *v);
	v->settings = s;
	v->store = store;
	pthread_mutex_init(&v->lock, NULL);
	gate_init(&v->gate, system_memory() / 4);
	progress_init(&v->progress, s->quiet ? "none" : s->progress, "verify",
		      total);
	return pool_new(&v->pool, "verify", cores, 2 * cores, err);
}

void verify_finish(struct verify *v)
{
	if (v->pool)
		pool_free(v->pool);
	v->pool = NULL;
	progress_clear(&v->progress);
	gate_destroy(&v->gate);
	pthread_mutex_destroy(&v->lock);
}
