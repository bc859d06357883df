/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of elements, cut into chunks that are encoded by all threads. */

/*
 * A slab is the buffer of one strip, or of several small ones.  A full slab goes to the
 * threads, which take its chunks one by one; the last thread that leaves it puts it back
 * among the free ones.  There are as many slabs as memory allows, so a slow writer stops
 * the reader.
 *
 * Encoded chunks are written in order, so that equal input gives equal files, which can
 * be read sequentially.  A thread with an encoded chunk waits until those before it are
 * written.  Chunks are taken in order, too, and the thread with the first unwritten chunk
 * does not wait; so there is always a thread that makes progress.
 */
#include "tensors/chunker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/pool.h"
#include "tensors/chunker_strips.h"

/* Small strips share a slab of about this many bytes, to reduce locking. */
#define SLAB_BYTES (UINT64_C(256) << 10)

struct slab {
	struct chunker *c;
	struct slab *next;
	unsigned char *data;
	uint64_t first, strips; /* the first strip, and the number of strips */
	uint64_t chunks;        /* chunks in all of them */
	_Atomic uint64_t taken;
	_Atomic unsigned busy; /* jobs that are not finished */
};
/* Buffers of one thread. */
struct scratch {
	struct scratch *next;
	unsigned char *chunk, *encoded; /* NULL: not needed */
};
struct chunker {
	struct chunker_options o;
	struct strips b;
	size_t bound;
	uint64_t slab_strips, slab_bytes;

	struct slab *current;
	uint64_t filled, strip; /* bytes in `current`; its first strip */

	struct pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t freed, turn;
	/* Number of chunks written, which is the number of the next one. */
	uint64_t written;
	struct slab *slabs; /* free ones */
	unsigned n_slabs, most_slabs;
	struct scratch *scratch; /* free ones */
	_Atomic int failed;
	struct error why;
};

static void chunker_fail(struct chunker *c, const struct error *why)
{
	lock_scope(&c->lock);
	if (!c->failed) {
		c->why = *why;
		c->failed = why->code;
	}
	pthread_cond_broadcast(&c->turn);
}

static int chunker_failure(struct chunker *c, struct error *err)
{
	if (!c->failed)
		return 0;
	lock_scope(&c->lock);
	return error_set(err, c->why.code, "%s", c->why.text);
}

/* ---- encoding ---------------------------------------------------------------- */

/* Write a chunk when all chunks before it are written. */
static int put_in_turn(struct chunker *c, uint64_t number, uint32_t mask,
		       const void *data, size_t n, struct error *err)
{
	int r;

	pthread_mutex_lock(&c->lock);
	while (!c->failed && c->written != number)
		pthread_cond_wait(&c->turn, &c->lock);
	pthread_mutex_unlock(&c->lock);
	if (c->failed)
		return chunker_failure(c, err);
	r = c->o.put(c->o.ctx, number, mask, data, n, err);
	if (r < 0) {
		chunker_fail(c, err); /* before another thread has its turn */
		return r;
	}
	lock_scope(&c->lock);
	c->written++;
	pthread_cond_broadcast(&c->turn);
	return r;
}

static int chunker_encode(struct chunker *c, const struct slab *s, uint64_t i,
			  struct scratch *x, struct error *err)
{
	uint64_t strip = s->first + i / c->b.per_strip;
	uint64_t number = strip * c->b.per_strip + i % c->b.per_strip;
	uint64_t slices = strip_slices(&c->b, strip);
	const unsigned char *data = s->data + (strip_start(&c->b, strip) -
					       strip_start(&c->b, s->first));
	uint32_t mask = 0;
	size_t n;
	int r;

	if (c->b.flat != c->b.axis || slices < c->b.chunk[c->b.axis]) {
		strip_cut(&c->b, data, slices, i % c->b.per_strip, x->chunk);
		data = x->chunk;
	}
	if (!c->o.pipeline.n)
		return put_in_turn(c, number, 0, data, c->b.chunk_bytes, err);
	r = pipeline_encode(&c->o.pipeline, data, c->b.chunk_bytes, x->encoded,
			    c->bound, &n, &mask, err);
	if (r < 0)
		return r;
	return put_in_turn(c, number, mask, x->encoded, n, err);
}

static struct scratch *get_scratch(struct chunker *c)
{
	struct scratch *x;

	lock_scope(&c->lock);
	x = c->scratch;
	c->scratch = x->next;
	return x;
}

static void chunker_run_slab(void *arg)
{
	struct slab *s = arg;
	struct chunker *c = s->c;
	struct scratch *x = get_scratch(c);
	struct error err = {0};
	uint64_t i;

	while (!c->failed && (i = s->taken++) < s->chunks)
		if (chunker_encode(c, s, i, x, &err) < 0)
			chunker_fail(c, &err);
	lock_scope(&c->lock);
	x->next = c->scratch;
	c->scratch = x;
	if (--s->busy == 0) {
		s->next = c->slabs;
		c->slabs = s;
		pthread_cond_signal(&c->freed);
	}
}

/* ---- filling ----------------------------------------------------------------- */

static struct slab *slab_new(struct chunker *c)
{
	struct slab *s = calloc(1, sizeof *s);

	if (s)
		s->data = malloc(c->slab_bytes);
	if (!s || !s->data) {
		free(s);
		return NULL;
	}
	s->c = c;
	return s;
}

/* Set c->current to a slab: a free one, a new one, or the first that becomes free. */
static int get_slab(struct chunker *c, struct error *err)
{
	lock_scope(&c->lock);
	if (!c->slabs && c->n_slabs < c->most_slabs) {
		c->current = slab_new(c);
		if (c->current)
			c->n_slabs++;
		else if (c->n_slabs == 0)
			return error_no_memory(err, "the chunks of the tensor");
	}
	while (!c->current) {
		while (!c->slabs)
			pthread_cond_wait(&c->freed, &c->lock);
		c->current = c->slabs;
		c->slabs = c->current->next;
	}
	c->filled = 0;
	return 0;
}

static void chunker_submit(struct chunker *c, uint64_t strips)
{
	struct slab *s = c->current;
	uint64_t jobs = min_u64(c->o.threads, strips * c->b.per_strip);

	s->first = c->strip;
	s->strips = strips;
	s->chunks = strips * c->b.per_strip;
	s->taken = 0;
	s->busy = (unsigned)jobs;
	c->strip += strips;
	c->current = NULL;
	for (uint64_t i = 0; i < jobs; i++)
		pool_submit(c->pool, chunker_run_slab, s);
}

static uint64_t slab_end(const struct chunker *c)
{
	return strip_start(&c->b, c->strip + c->slab_strips) -
	       strip_start(&c->b, c->strip);
}

int chunker_add(struct chunker *c, const void *data, uint64_t n,
		struct error *err)
{
	const unsigned char *at = data;

	while (n > 0) {
		uint64_t take;
		int r = chunker_failure(c, err);

		if (r == 0 && !c->current)
			r = get_slab(c, err);
		if (r < 0)
			return r;
		take = min_u64(n, slab_end(c) - c->filled);
		if (at) {
			memcpy(c->current->data + c->filled, at, take);
			at += take;
		} else {
			memset(c->current->data + c->filled, 0, take);
		}
		c->filled += take;
		n -= take;
		if (c->filled == slab_end(c))
			chunker_submit(c, c->slab_strips);
	}
	return 0;
}

int chunker_finish(struct chunker *c, uint64_t rows, struct error *err)
{
	if (c->b.axis == 0 && rows > 0) {
		/* There are fewer rows than in a chunk, so none was cut yet. */
		if (rows < c->b.chunk[0]) {
			c->b.chunk_bytes =
				c->b.chunk_bytes / c->b.chunk[0] * rows;
			c->b.chunk[0] = rows;
		}
		pool_drain(c->pool);
		c->b.length = rows;
	}
	if (c->current && c->filled > 0) {
		uint64_t strips = 0, from = strip_start(&c->b, c->strip);

		while (strip_start(&c->b, c->strip + strips) - from < c->filled)
			strips++;
		chunker_submit(c, strips);
	}
	pool_drain(c->pool);
	return chunker_failure(c, err);
}

uint64_t chunker_rows_of_chunk(const struct chunker *c)
{
	return c->b.chunk[0];
}

/* ---- making ------------------------------------------------------------------ */

static int chunker_measure(struct chunker *c, struct error *err)
{
	int r = strips_init(&c->b, c->o.rank, c->o.elem, c->o.shape, c->o.chunk,
			    err);

	if (r < 0)
		return r;
	c->slab_bytes = c->b.inner * c->b.chunk[c->b.axis];
	c->slab_strips = max_u64(1, min_u64(SLAB_BYTES, c->o.memory / 8) /
					    c->slab_bytes);
	c->slab_bytes *= c->slab_strips;
	c->bound = pipeline_bound(&c->o.pipeline, c->b.chunk_bytes);
	return 0;
}

/* Are there chunks that have to be cut out of their strip? */
static bool are_cut(const struct chunker *c)
{
	const struct strips *b = &c->b;
	uint64_t chunk = b->chunk[b->axis];

	return b->flat != b->axis || (b->axis ? b->length % chunk : chunk > 1);
}

/* Bytes of memory that a thread needs in addition to slabs. */
static uint64_t thread_bytes(const struct chunker *c)
{
	uint64_t bytes = are_cut(c) ? c->b.chunk_bytes : 0;

	if (c->o.pipeline.n)
		bytes += c->bound + pipeline_encode_memory(&c->o.pipeline,
							   c->b.chunk_bytes);
	return bytes;
}

/* Use as many threads as memory allows with two slabs, one being filled and one being
 * encoded; then as many slabs as still fit and are of use. */
static int chunker_share_memory(struct chunker *c, struct error *err)
{
	uint64_t each = thread_bytes(c), least, slabs;
	char need[32], have[32];

	while (c->o.threads > 1 &&
	       2 * c->slab_bytes + c->o.threads * each > c->o.memory)
		c->o.threads--;
	least = c->slab_bytes + each;
	if (least > c->o.memory) {
		format_size(least, need, sizeof need);
		format_size(c->o.memory, have, sizeof have);
		return error_set(err, -ENOMEM,
				 "a row of chunks takes %s of memory, but %s "
				 "are allowed for it; give %.1f times as much "
				 "with --memory, smaller chunks with --chunk, "
				 "or a lower level with --comp",
				 need, have,
				 (double)least / (double)c->o.memory + 0.05);
	}
	slabs = (c->o.memory - c->o.threads * each) / c->slab_bytes;
	c->most_slabs = (unsigned)max_u64(
		1, min_u64(slabs, 2 * (uint64_t)c->o.threads + 2));
	return 0;
}

static int make_scratch(struct chunker *c, struct error *err)
{
	for (unsigned i = 0; i < c->o.threads; i++) {
		struct scratch *x = calloc(1, sizeof *x);

		if (!x)
			return error_no_memory(err, "the chunks of the tensor");
		x->next = c->scratch;
		c->scratch = x;
		if (are_cut(c) && !(x->chunk = malloc(c->b.chunk_bytes)))
			return error_no_memory(err, "the chunks of the tensor");
		if (c->o.pipeline.n && !(x->encoded = malloc(c->bound)))
			return error_no_memory(err, "the chunks of the tensor");
	}
	return 0;
}

int chunker_new(struct chunker **out, const struct chunker_options *o,
		struct error *err)
{
	struct chunker *c = calloc(1, sizeof *c);
	int r;

	*out = NULL;
	if (!c)
		return error_no_memory(err, "the chunks of the tensor");
	c->o = *o;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->freed, NULL);
	pthread_cond_init(&c->turn, NULL);
	r = chunker_measure(c, err);
	if (r == 0)
		r = chunker_share_memory(c, err);
	if (r == 0)
		r = make_scratch(c, err);
	if (r == 0)
		r = pool_new(&c->pool, "encode", c->o.threads, 4 * c->o.threads,
			     err);
	if (r < 0)
		chunker_free(c);
	else
		*out = c;
	return r;
}

static void slab_free(struct slab *s)
{
	if (s)
		free(s->data);
	free(s);
}

void chunker_free(struct chunker *c)
{
	if (!c)
		return;
	pool_free(c->pool);
	slab_free(c->current);
	while (c->slabs) {
		struct slab *s = c->slabs;

		c->slabs = s->next;
		slab_free(s);
	}
	while (c->scratch) {
		struct scratch *x = c->scratch;

		c->scratch = x->next;
		free(x->chunk);
		free(x->encoded);
		free(x);
	}
	pthread_cond_destroy(&c->turn);
	pthread_cond_destroy(&c->freed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
