/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of the files of a scan, read ahead by many threads, delivered in order. */

/*
 * Entries are read in order, in batches: some small files, or a piece of a large one.
 * Each thread takes the next batch and reads it while other threads read the following
 * ones; the consumer waits for the batch that is next in order.  On a file system that
 * answers slowly, `jobs` files are requested at a time; on one that answers at once, a
 * batch costs two locks for 32 files.  A batch is begun only when there is memory for it,
 * unless it is the next one in order.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "pack/feed_private.h"

#define BATCH 32
#define JOBS_MAX 256
/* Free buffers of each size that are kept for later batches. */
#define SPARE 64

struct batch {
	uint64_t number;
	enum { BATCH_FREE, BATCH_BUSY, BATCH_READY } state;
	bool no_memory;
	unsigned n;
	struct feed_piece piece[BATCH];
	void *data;
	size_t room; /* bytes of `data`: FEED_WHOLE, FEED_PIECE or 0 */
};
struct spare {
	void *at[SPARE];
	unsigned n;
};
struct feed {
	struct feed_source source;
	struct scan *scan; /* feed_next adds problems to it */
	const _Atomic int *stop;
	pthread_t *threads;
	unsigned n_threads;
	struct batch *ring;
	unsigned n_ring;

	pthread_mutex_t lock; /* guards what follows, and batch.state */
	pthread_cond_t work, ready;
	uint64_t entry, at;    /* where the next batch begins */
	uint64_t begun, taken; /* numbers of batches */
	uint64_t held;         /* bytes of batches that were not released */
	struct spare small, large;
	bool ended;

	/* Used by feed_next alone. */
	struct batch *current;
	unsigned next;
	/* The entry whose problem was reported last; UINT64_MAX: none. */
	uint64_t told;
};

/* ---- buffers; f->lock is held ---------------------------------------------- */

static struct spare *spare_of(struct feed *f, size_t room)
{
	return room == FEED_PIECE ? &f->large : &f->small;
}

static void *spare_take(struct feed *f, size_t room)
{
	struct spare *s = spare_of(f, room);

	return s->n ? s->at[--s->n] : NULL;
}

/* Keep a buffer for reuse.  Return NULL, or `data` if the caller has to free it. */
static void *spare_give(struct feed *f, void *data, size_t room)
{
	struct spare *s = spare_of(f, room);

	if (!data || s->n == SPARE)
		return data;
	s->at[s->n++] = data;
	return NULL;
}

/* Free spare buffers of the other size while all buffers exceed the memory limit. */
static void spare_trim(struct feed *f, size_t room)
{
	size_t other = room == FEED_PIECE ? FEED_WHOLE : FEED_PIECE;

	while (f->held + f->small.n * FEED_WHOLE + f->large.n * FEED_PIECE >
		       f->source.o.memory &&
	       spare_of(f, other)->n)
		free(spare_take(f, other));
}

/* ---- what a batch contains; f->lock is held -------------------------------- */

static uint64_t feed_entry_bytes(const struct feed *f, uint64_t entry)
{
	const struct scan_entry *e = &f->scan->list.at[entry];

	return f->source.o.data && S_ISREG(e->mode) && e->same_as == entry
		       ? e->size
		       : 0;
}

static struct feed_piece *add_piece(struct feed *f, struct batch *b,
				    uint64_t size, bool last)
{
	struct feed_piece *p = &b->piece[b->n++];

	*p = (struct feed_piece){.u = {.entry = f->entry,
				       .at = f->at,
				       .size = size,
				       .first = f->at == 0,
				       .last = last}};
	return p;
}

/* Number of files for the next batch, at most, so that all threads get some. */
static unsigned feed_fair_share(const struct feed *f)
{
	uint64_t left = f->scan->list.n - f->entry;

	return (unsigned)min_u64(BATCH,
				 left / (2 * (uint64_t)f->n_threads) + 1);
}

/* Fill in the next batch.  At least one entry must be left. */
static void feed_plan_batch(struct feed *f, struct batch *b)
{
	uint64_t bytes = feed_entry_bytes(f, f->entry), sum = 0;
	unsigned most = feed_fair_share(f);

	b->n = 0;
	if (bytes > FEED_WHOLE) {
		uint64_t n = min_u64(bytes - f->at, FEED_PIECE);
		bool last = f->at + n == bytes;

		b->room = FEED_PIECE;
		add_piece(f, b, n, last);
		f->at += n;
		if (last) {
			f->at = 0;
			f->entry++;
		}
		return;
	}
	while (b->n < most && f->entry < f->scan->list.n) {
		bytes = feed_entry_bytes(f, f->entry);
		if (bytes > FEED_WHOLE - sum)
			break;
		add_piece(f, b, bytes, true);
		sum += bytes;
		f->entry++;
	}
	b->room = sum ? FEED_WHOLE : 0;
}

/* May the next batch begin? */
static bool feed_has_room(const struct feed *f)
{
	if (f->begun - f->taken >= f->n_ring)
		return false;
	return f->begun == f->taken ||
	       f->held + FEED_PIECE <= f->source.o.memory;
}

/* ---- threads ------------------------------------------------------------- */

static struct batch *feed_begin_batch(struct feed *f)
{
	lock_scope(&f->lock);
	struct batch *b;

	while (!f->ended && !*f->stop && f->entry < f->scan->list.n &&
	       !feed_has_room(f))
		pthread_cond_wait(&f->work, &f->lock);
	if (f->ended || *f->stop || f->entry >= f->scan->list.n)
		return NULL;
	b = &f->ring[f->begun % f->n_ring];
	b->number = f->begun++;
	b->state = BATCH_BUSY;
	b->no_memory = false;
	feed_plan_batch(f, b);
	f->held += b->room;
	b->data = b->room ? spare_take(f, b->room) : NULL;
	if (b->room && !b->data)
		spare_trim(f, b->room);
	return b;
}

static void feed_read_batch(struct feed *f, struct batch *b)
{
	char *to;

	if (b->room && !b->data)
		b->data = malloc(b->room);
	to = b->data;
	if (b->room && !to) {
		b->no_memory = true;
		return;
	}
	for (unsigned i = 0; i < b->n && !b->no_memory; i++) {
		uint64_t planned = b->piece[i].u.size;

		b->no_memory = !feed_read(&f->source, &b->piece[i], to);
		to = to ? to + planned : NULL;
	}
}

static void *feed_run_thread(void *arg)
{
	struct feed *f = arg;
	struct batch *b;

	while ((b = feed_begin_batch(f))) {
		feed_read_batch(f, b);
		pthread_mutex_lock(&f->lock);
		b->state = BATCH_READY;
		if (b->number == f->taken)
			pthread_cond_signal(&f->ready);
		pthread_mutex_unlock(&f->lock);
	}
	/* feed_next may be waiting for a batch that no thread will begin any more. */
	pthread_mutex_lock(&f->lock);
	pthread_cond_signal(&f->ready);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- delivering -------------------------------------------------------------- */

static void feed_release_batch(struct feed *f)
{
	struct batch *b = f->current;
	void *data;

	if (!b)
		return;
	f->current = NULL;
	for (unsigned i = 0; i < b->n; i++)
		feed_piece_free(&b->piece[i]);
	pthread_mutex_lock(&f->lock);
	data = spare_give(f, b->data, b->room);
	b->data = NULL;
	b->state = BATCH_FREE;
	f->held -= b->room;
	f->taken++;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	free(data);
}

/* Wait for the next batch.  Return 1 if f->current is that batch, 0 if there are no more,
 * -EINTR or -ENOMEM. */
static int feed_take_batch(struct feed *f, struct error *err)
{
	lock_scope(&f->lock);
	struct batch *b = &f->ring[f->taken % f->n_ring];

	for (;;) {
		if (*f->stop)
			return error_set(err, -EINTR, "interrupted");
		if (f->begun > f->taken && b->state == BATCH_READY)
			break;
		if (f->begun == f->taken && f->entry >= f->scan->list.n)
			return 0;
		pthread_cond_wait(&f->ready, &f->lock);
	}
	if (b->no_memory)
		return error_no_memory(err, "files that are read ahead");
	f->current = b;
	f->next = 0;
	return 1;
}

static bool feed_report(struct feed *f, const struct feed_piece *p)
{
	if (f->told == p->u.entry)
		return true;
	f->told = p->u.entry;
	return scan_problem(f->scan, p->u.path,
			    p->why ? p->why : strerror(p->code));
}

/* Report problems of a piece.  Return 1 if it is to be delivered, 0 if its entry is left
 * out, -ENOMEM. */
static int feed_check_piece(struct feed *f, struct feed_piece *p,
			    struct error *err)
{
	struct scan_entry *list = f->scan->list.at, *e = &list[p->u.entry];
	bool ok = true;

	if (e->left_out)
		return 0;
	if (p->u.same_as && list[e->same_as].left_out) {
		p->why = "the other name of the same file could not be read";
		e->left_out = true;
		ok = feed_report(f, p);
	} else if (p->outcome == FEED_GONE && p->u.first) {
		e->left_out = true;
		ok = feed_report(f, p);
	} else if (p->outcome != FEED_FINE) {
		ok = feed_report(f, p);
		if (p->outcome == FEED_GONE) {
			/* Zeros, because its size was delivered before. */
			p->u.data = NULL;
			p->u.lost = true;
		}
	}
	if (!ok)
		return error_no_memory(err, "files that are read ahead");
	return !e->left_out;
}

int feed_next(struct feed *f, struct feed_unit *u, struct error *err)
{
	for (;;) {
		struct feed_piece *p;
		int r;

		if (f->current && f->next == f->current->n)
			feed_release_batch(f);
		if (!f->current && (r = feed_take_batch(f, err)) <= 0)
			return r;
		p = &f->current->piece[f->next++];
		r = feed_check_piece(f, p, err);
		if (r < 0)
			return r;
		if (r > 0) {
			*u = p->u;
			return 1;
		}
	}
}

/* ---- beginning and end --------------------------------------------------- */

static int feed_start_threads(struct feed *f, unsigned n, struct error *err)
{
	f->threads = calloc(n, sizeof *f->threads);
	f->n_ring = 2 * n + 4;
	f->ring = calloc(f->n_ring, sizeof *f->ring);
	if (!f->threads || !f->ring)
		return error_no_memory(err, "files that are read ahead");
	f->n_threads = n; /* feed_fair_share divides by it */
	for (unsigned i = 0; i < n; i++) {
		int r = pthread_create(&f->threads[i], NULL, feed_run_thread,
				       f);

		if (!r)
			continue;
		pthread_mutex_lock(&f->lock);
		f->n_threads = i;
		pthread_mutex_unlock(&f->lock);
		if (!i)
			return error_errno(err, -r, "cannot start a thread");
		break; /* fewer threads are enough */
	}
	return 0;
}

int feed_new(struct feed **out, struct scan *s, const char *top,
	     const struct feed_options *o, const _Atomic int *stop,
	     struct error *err)
{
	struct feed *f = calloc(1, sizeof *f);
	unsigned n = o->jobs < 1 ? 1 : o->jobs > JOBS_MAX ? JOBS_MAX : o->jobs;
	int r = 0;

	*out = NULL;
	if (!f)
		return error_no_memory(err, "files that are read ahead");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->ready, NULL);
	f->scan = s;
	f->stop = stop;
	f->told = UINT64_MAX;
	f->source.scan = s;
	f->source.o = *o;
	f->source.top = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->source.top < 0)
		r = error_errno(err, -errno, "'%s'", top);
	if (r == 0)
		r = feed_start_threads(f, n, err);
	if (r < 0) {
		feed_close(f);
		return r;
	}
	*out = f;
	return 0;
}

void feed_close(struct feed *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->n_threads; i++)
		pthread_join(f->threads[i], NULL);
	for (unsigned i = 0; f->ring && i < f->n_ring; i++) {
		for (unsigned k = 0; k < f->ring[i].n; k++)
			feed_piece_free(&f->ring[i].piece[k]);
		free(f->ring[i].data);
	}
	for (unsigned i = 0; i < f->small.n; i++)
		free(f->small.at[i]);
	for (unsigned i = 0; i < f->large.n; i++)
		free(f->large.at[i]);
	if (f->source.top >= 0)
		close(f->source.top);
	free(f->ring);
	free(f->threads);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->ready);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
