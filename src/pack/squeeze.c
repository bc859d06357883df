/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream, compressed in independent blocks by all threads and written in order. */

/*
 *	      written          begun
 *	         |               |
 *	  free   | ready | busy  | free        a ring: block k is at k % n
 *
 * The caller fills a block, and a thread compresses it.  The thread that completes the
 * next block in order writes it and all ready blocks behind it; the other threads go on
 * compressing.  So a slow output stops only the caller, and only when no buffer is left.
 *
 * A thread compresses into a buffer of its own and exchanges it for the block's, whose
 * contents are not needed any more.  So a waiting block occupies one buffer, not two.
 */
#include "pack/squeeze.h"

#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "pack/squeeze_private.h"

struct block {
	struct squeeze *s;
	unsigned char
		*data; /* first the added bytes, then those to be written */
	struct squeeze_block out;
	bool ready;
};
/* What a thread borrows while it compresses a block. */
struct bench {
	struct squeeze_coder *coder; /* NULL: blocks are not compressed */
	unsigned char *spare;
};
struct squeeze {
	struct squeeze_options o;
	squeeze_write *write;
	void *ctx;
	struct pool *pool;
	size_t bound; /* bytes of a buffer */
	struct block *ring;
	struct bench *benches;
	unsigned n, n_benches;
	struct block *filling; /* the block that the caller fills; NULL: none */
	uint64_t added;        /* bytes in all blocks before `filling` */
	pthread_mutex_t lock;  /* guards what follows, and block.ready */
	pthread_cond_t changed;
	uint64_t begun, written; /* numbers of blocks */
	unsigned n_free;         /* free benches: the first ones */
	bool writing;
	struct error failure; /* the first failure */
};

static int squeeze_failure(const struct squeeze *s, struct error *err)
{
	if (s->failure.code && err)
		*err = s->failure;
	return s->failure.code;
}

/* ---- threads ------------------------------------------------------------- */

/* Write all blocks that are next in order and ready.  The lock is held, and released
 * during each write. */
static void write_ready(struct squeeze *s)
{
	struct block *b = &s->ring[s->written % s->n];

	if (s->writing)
		return;
	s->writing = true;
	while (b->ready) {
		struct error err = {0};

		if (!s->failure.code) {
			pthread_mutex_unlock(&s->lock);
			s->write(s->ctx, &b->out, &err);
			pthread_mutex_lock(&s->lock);
			if (err.code && !s->failure.code)
				s->failure = err;
		}
		b->ready = false;
		s->written++;
		pthread_cond_broadcast(&s->changed);
		b = &s->ring[s->written % s->n];
	}
	s->writing = false;
}

/* Borrow a bench; there are as many as threads, so one is free.  *in_vain: the stream
 * failed. */
static struct bench squeeze_take_bench(struct squeeze *s, bool *in_vain)
{
	lock_scope(&s->lock);
	*in_vain = s->failure.code != 0;
	return s->benches[--s->n_free];
}

static int squeeze_compress_block(struct block *b, struct bench *bench,
				  struct error *err)
{
	struct squeeze_block *o = &b->out;
	unsigned char *was = b->data;
	int r;

	o->crc = libdeflate_crc32(0, was, o->len);
	o->data = was;
	o->size = o->len;
	o->squeezed = false;
	if (!bench->coder)
		return 0;
	r = coder_run(bench->coder, was, o->len, bench->spare, b->s->bound,
		      &o->size, &o->squeezed, err);
	if (r == 0) {
		o->data = b->data = bench->spare;
		bench->spare = was;
	}
	return r;
}

static void squeeze_run_block(void *arg)
{
	struct block *b = arg;
	struct squeeze *s = b->s;
	struct error err = {0};
	bool in_vain;
	struct bench bench = squeeze_take_bench(s, &in_vain);

	if (!in_vain)
		squeeze_compress_block(b, &bench, &err);
	lock_scope(&s->lock);
	s->benches[s->n_free++] = bench;
	if (err.code && !s->failure.code)
		s->failure = err;
	b->ready = true;
	write_ready(s);
}

/* ---- the caller ---------------------------------------------------------- */

/* Wait for a free block, which becomes s->filling. */
static int squeeze_begin_block(struct squeeze *s, struct error *err)
{
	lock_scope(&s->lock);
	struct block *b;

	while (s->begun - s->written == s->n && !s->failure.code)
		pthread_cond_wait(&s->changed, &s->lock);
	if (s->failure.code)
		return squeeze_failure(s, err);
	b = &s->ring[s->begun++ % s->n];
	b->out = (struct squeeze_block){.at = s->added};
	s->filling = b;
	return 0;
}

static int squeeze_submit_block(struct squeeze *s, struct error *err)
{
	struct block *b = steal_pointer(&s->filling);

	s->added += b->out.len;
	pool_submit(s->pool, squeeze_run_block, b);
	lock_scope(&s->lock);
	return squeeze_failure(s, err);
}

int squeeze_add(struct squeeze *s, const void *data, size_t n,
		struct error *err)
{
	const unsigned char *at = data;
	int r = 0;

	while (n > 0 && r == 0) {
		struct squeeze_block *o;
		size_t part;

		if (!s->filling && (r = squeeze_begin_block(s, err)) < 0)
			break;
		o = &s->filling->out;
		part = (size_t)min_u64(n, s->o.block - o->len);
		memcpy(s->filling->data + o->len, at, part);
		o->len += part;
		at += part;
		n -= part;
		if (o->len == s->o.block)
			r = squeeze_submit_block(s, err);
	}
	return r;
}

size_t squeeze_filled(const struct squeeze *s)
{
	return s->filling ? s->filling->out.len : 0;
}

int squeeze_cut(struct squeeze *s, struct error *err)
{
	if (s->filling)
		return squeeze_submit_block(s, err);
	lock_scope(&s->lock);
	return squeeze_failure(s, err);
}

int squeeze_finish(struct squeeze *s, struct error *err)
{
	int r = 0;

	if (!s->filling && !s->added && s->o.codec != SQUEEZE_NONE)
		r = squeeze_begin_block(s, err);
	if (r == 0)
		r = squeeze_cut(s, err);
	pool_drain(s->pool);
	lock_scope(&s->lock);
	return r < 0 ? r : squeeze_failure(s, err);
}

/* ---- making -------------------------------------------------------------- */

static int squeeze_check_options(const struct squeeze_options *o,
				 struct error *err)
{
	if (o->level < 0 || o->level > squeeze_most(o->codec))
		return error_set(err, -EINVAL, "%s has levels 1 to %d, not %d",
				 o->codec == SQUEEZE_GZIP   ? "gzip"
				 : o->codec == SQUEEZE_ZSTD ? "zstd"
							    : "none",
				 squeeze_most(o->codec), o->level);
	if (!o->block || o->block > SQUEEZE_BLOCK_MOST)
		return error_set(err, -EINVAL,
				 "blocks of a compressed stream have 1 to %lu "
				 "bytes",
				 (unsigned long)SQUEEZE_BLOCK_MOST);
	return 0;
}

/* Set the numbers of threads and blocks.  A thread needs a buffer, the memory of its
 * coder, and two blocks, so that it has work while another block is filled. */
static void squeeze_share_memory(struct squeeze *s)
{
	uint64_t each = (s->o.codec == SQUEEZE_NONE ? 2 : 3) * s->bound +
			coder_memory(&s->o);
	uint64_t most =
		s->o.memory > s->bound ? (s->o.memory - s->bound) / each : 0;

	/* Without compression, one thread is as fast as several. */
	if (s->o.codec == SQUEEZE_NONE)
		most = min_u64(most, 1);
	s->o.threads = (unsigned)max_u64(1, min_u64(s->o.threads, most));
	s->n = 2 * s->o.threads + 1;
}

static int make_buffers(struct squeeze *s, struct error *err)
{
	int r = 0;

	s->ring = calloc(s->n, sizeof *s->ring);
	s->benches = calloc(s->o.threads, sizeof *s->benches);
	if (!s->ring || !s->benches)
		return error_no_memory(err, "the buffers of compression");
	for (unsigned i = 0; i < s->n; i++) {
		s->ring[i].s = s;
		s->ring[i].data = malloc(s->bound);
		if (!s->ring[i].data)
			return error_no_memory(err,
					       "the buffers of compression");
	}
	for (; s->n_benches < s->o.threads && r == 0; s->n_benches++) {
		struct bench *b = &s->benches[s->n_benches];

		if (s->o.codec == SQUEEZE_NONE)
			continue;
		b->spare = malloc(s->bound);
		r = b->spare ? coder_new(&b->coder, &s->o, err)
			     : error_no_memory(err,
					       "the buffers of compression");
	}
	s->n_free = s->n_benches;
	return r;
}

int squeeze_new(struct squeeze **out, const struct squeeze_options *o,
		squeeze_write *write, void *ctx, struct error *err)
{
	struct squeeze *s;
	int r = squeeze_check_options(o, err);

	*out = NULL;
	if (r < 0)
		return r;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_no_memory(err, "the buffers of compression");
	s->o = *o;
	s->write = write;
	s->ctx = ctx;
	s->bound = coder_bound(o, o->block);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	squeeze_share_memory(s);
	r = make_buffers(s, err);
	if (r == 0)
		r = pool_new(&s->pool, "squeeze", s->o.threads, s->n, err);
	if (r < 0) {
		squeeze_free(s);
		return r;
	}
	*out = s;
	return 0;
}

/* Mark the stream as failed, so that queued blocks are dropped. */
static void squeeze_cancel(struct squeeze *s)
{
	lock_scope(&s->lock);
	if (!s->failure.code)
		s->failure.code = -ECANCELED;
}

void squeeze_free(struct squeeze *s)
{
	if (!s)
		return;
	squeeze_cancel(s);
	pool_free(s->pool);
	for (unsigned i = 0; s->ring && i < s->n; i++)
		free(s->ring[i].data);
	for (unsigned i = 0; i < s->n_benches; i++) {
		coder_free(s->benches[i].coder);
		free(s->benches[i].spare);
	}
	free(s->ring);
	free(s->benches);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
