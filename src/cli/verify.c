/* SPDX-License-Identifier: BSD-2-Clause */
/* Read and decode every stored chunk once, on all cores, in bounded memory. */

/*
 * The main thread goes through tensors and parts (and their parts, where they are
 * virtual datasets themselves) and queues jobs: a segment of 1024 chunks, a piece
 * of contiguous data, the values of a part that are text or sequences.  A job finds
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
#define VALUES 4096 /* at a time, but whole rows */
#define PIECE (UINT64_C(64) << 20)
#define READ_BYTES (UINT64_C(1) << 20)

struct part_check {
	struct verify *v;
	struct tensor *t;
	uint32_t part;
	struct report_rows rows; /* of its dataset */
	const struct layout *layout;
	_Atomic unsigned refs; /* jobs, and the main thread */
	_Atomic bool spoiled;
	_Atomic uint64_t found; /* chunks that the index has */
};
struct job {
	struct part_check *check;
	uint32_t file;     /* of bytes */
	uint64_t first, n; /* chunks, bytes or rows */
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
	if (tensor_is_distributed(t))
		snprintf(buf, n, "%s: %s of %s", t->name, t->parts[p].dataset,
			 handles_name(t->handles, t->parts[p].file));
	else
		snprintf(buf, n, "%s", t->name);
}

/* Something that concerns the whole part: say it once. */
static void spoil(struct part_check *c, int code, const struct error *err)
{
	char name[1024];

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

	/* What the library makes is not located. */
	memset(at, 0, sizeof at);
	if (!atomic_load(&c->spoiled) && !c->layout->by_library)
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

		r = handles_read(c->t->handles, job->file, job->first + done,
				 buf, n, &err);
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

static void count_value(void *ctx, const char *s, size_t len)
{
	(void)s;
	*(uint64_t *)ctx += len;
}

/* As many as make a few MiB. */
static uint64_t value_batch(const struct tensor *t)
{
	return t->text_bytes
		       ? min_u64(VALUES, max_u64(1, (4 << 20) / t->text_bytes))
		       : VALUES / 8;
}

/* Rows of values, box by box; of a scalar, the one there is. */
static void run_values(void *arg)
{
	struct job *job = arg;
	struct part_check *c = job->check;
	const struct grid *g = c->layout->grid;
	uint64_t row = 1, step;
	struct box b;

	for (unsigned i = 0; i < g->rank; i++) {
		b.start[i] = 0;
		b.count[i] = g->shape[i];
		row *= i ? max_u64(g->shape[i], 1) : 1;
	}
	step = max_u64(1, value_batch(c->t) / row);
	for (uint64_t i = 0; i < job->n && !atomic_load(&c->spoiled);
	     i += step) {
		struct error err = {0};
		uint64_t bytes = 0;
		int r;

		if (g->rank) {
			b.start[0] = job->first + i;
			b.count[0] = min_u64(job->n - i, step);
		}
		r = c->t->ops->values(c->t, c->part, &b, count_value, &bytes,
				      &err);
		atomic_fetch_add(&c->v->decoded, bytes);
		if (r < 0)
			spoil(c, r, &err);
		advance(c->v, 0);
	}
	check_put(c);
	free(job);
}

/* ---- queueing ------------------------------------------------------------ */

static int submit(struct part_check *c, pool_fn *fn, uint32_t file,
		  uint64_t first, uint64_t n)
{
	struct job *job = malloc(sizeof *job);

	if (!job)
		return -ENOMEM;
	job->check = c;
	job->file = file;
	job->first = first;
	job->n = n;
	atomic_fetch_add(&c->refs, 1);
	pool_submit(c->v->pool, fn, job);
	return 0;
}

static int submit_chunks(struct part_check *c)
{
	uint64_t first, end;
	int r = 0;

	report_chunks(&c->rows, c->layout, &first, &end);
	while (first < end && r == 0 && !atomic_load(&c->spoiled)) {
		uint64_t n = min_u64(end - first, SEGMENT);
		uint64_t written = atomic_load(&c->t->parts[c->part].written);

		/* A grid may be vast and all but empty: when as many chunks
		 * were found as the index counts, the rest is unwritten. */
		if (written && atomic_load(&c->found) + 1 >= written) {
			atomic_fetch_add(&c->v->unwritten, end - first);
			break;
		}
		r = submit(c, run_chunks, 0, first, n);
		first += n;
	}
	return r;
}

static int submit_file(struct part_check *c, uint32_t file, uint64_t pos,
		       uint64_t n)
{
	int r = 0;

	while (n && r == 0 && !atomic_load(&c->spoiled)) {
		uint64_t piece = min_u64(n, PIECE);

		r = submit(c, run_bytes, file, pos, piece);
		pos += piece;
		n -= piece;
	}
	return r;
}

/* Contiguous bytes, in one file or in stretches. */
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

static int submit_values(struct part_check *c)
{
	const struct grid *g = c->layout->grid;
	uint64_t begin, end;

	if (!c->t->ops->values || !g || !g->count)
		return 0;
	end = g->rank ? min_u64(c->rows.end, g->shape[0]) : 1;
	begin = g->rank ? min_u64(c->rows.begin, end) : 0;
	return begin < end ? submit(c, run_values, 0, begin, end - begin) : 0;
}

static int check_parts(struct verify *v, struct tensor *t, bool nested);

static int submit_part(struct part_check *c)
{
	struct error err = {0};
	int r = report_part(c->t, c->part, &c->layout, &err);

	if (r < 0) {
		spoil(c, r, &err);
		return 0;
	}
	if (c->layout->kind == LAYOUT_NESTED)
		return check_parts(c->v, c->layout->nested, true);
	if (!dtype_is_binary(&c->t->dtype))
		return submit_values(c);
	switch (c->layout->kind) {
	case LAYOUT_CHUNKED:
		return submit_chunks(c);
	case LAYOUT_LINEAR:
		return submit_bytes(c);
	case LAYOUT_FETCHED:
		check_chunk(c, 0);
		break;
	case LAYOUT_ABSENT:
	case LAYOUT_NESTED:
		break;
	}
	return 0;
}

/* Of a tensor, or of a part of one: their depth is bounded, their number not. */
static int check_parts(struct verify *v, struct tensor *t, bool nested)
{
	cleanup_free struct report_rows *rows = report_rows(t);
	int r = rows ? 0 : -ENOMEM;
	static const char too_many[] =
		"virtual datasets of virtual datasets have too many parts: not "
		"all were checked";

	for (uint32_t p = 0; p < t->nparts && r == 0; p++) {
		struct part_check *c;

		if (nested && v->nested >= REPORT_NESTED) {
			if (v->nested == REPORT_NESTED)
				verify_bad(v, t->name, -ENOTSUP, too_many);
			v->nested = REPORT_NESTED + 1;
			return 0;
		}
		v->nested += nested;
		c = calloc(1, sizeof *c);
		if (!c)
			return -ENOMEM;
		c->v = v;
		c->t = t;
		c->part = p;
		c->rows = rows[p];
		atomic_init(&c->refs, 1);
		r = submit_part(c);
		check_put(c);
	}
	return r;
}

/* Does each mapping fit into the dataset that it takes elements from?  (A part
 * that cannot be opened is listed as such.) */
static void check_mappings(struct verify *v, struct tensor *t)
{
	struct mosaic_piece piece;
	struct tile tile;
	struct box whole;
	int64_t part;

	for (unsigned i = 0; i < t->rank; i++) {
		whole.start[i] = 0;
		whole.count[i] = t->shape[i];
	}
	for (uint32_t k = 0; k < mosaic_count(t->mosaic); k++) {
		struct error err = {0};
		uint64_t at = 0;

		mosaic_tile(t->mosaic, k, &tile);
		for (unsigned i = 0; i < t->rank; i++)
			at = at * t->shape[i] + tile.to.start[i];
		if (!atomic_load(&t->parts[tile.part].layout))
			continue;
		if (tensor_find(t, &whole, at, &part, &piece, &err) == -EIO)
			verify_bad(v, t->name, -EIO, err.text);
	}
}

int verify_tensor(void *ctx, struct tensor *t)
{
	struct verify *v = ctx;
	int r;

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
	v->nested = 0;
	r = check_parts(v, t, false);
	if (!r && t->mosaic)
		check_mappings(v, t);
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
