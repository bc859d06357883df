/* SPDX-License-Identifier: BSD-2-Clause */
/* Give the kernel whole small files before they are asked for. */
/*
 *     READ answered --note--> job    (bounded; full: dropped)
 *                              |
 *     finders    decode if need be, gather a copy      hold no pin, no lock
 *                              |
 *                            parcel  (bounded; full: the finder waits)
 *                              |
 *     storer     the kernel's page cache               waits where a READ has the page
 *
 * What a READ waits for never waits for a push: workers that answer only drop a job,
 * the storer has bytes of its own, and what it waits for is one of those workers.
 *
 * A push is a read by somebody else: same checks, same bytes; what cannot be read is
 * left for its reader to find out, and nobody is told of it here.  A file is pushed
 * from its beginning to its end in one piece or not at all, so that its length in the
 * kernel is what it was.
 */
#include "fs/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "base/system.h"
#include "fs/push_private.h"
#include "store/thread.h"

#define THREADS_MAX 4
#define JOBS 256
#define PARCELS 8

/* Files of a range that are one job. */
#define SLICE 8
struct job {
	struct push *p;
	enum push_kind kind;
	uint64_t near;           /* the file that was read */
	struct push_range range; /* PUSH_AHEAD: its siblings that are next */
};
/* Files go to the storer by the dozen: to wake it for each costs more than storing. */
#define PARCEL_FILES 32
#define PARCEL_BYTES (UINT64_C(256) << 10)
struct parcel {
	struct push *p;
	enum push_kind kind;
	unsigned n;
	uint64_t ino[PARCEL_FILES];
	uint32_t size[PARCEL_FILES];
	size_t used;
	struct buf *bytes;
};

bool push_may(struct push *p)
{
	return !atomic_load_explicit(&p->stop, memory_order_relaxed);
}

/* ---- storing -------------------------------------------------------------- */

static int store_one(struct push *p, enum push_kind kind, uint64_t ino,
		     const unsigned char *bytes, uint32_t size)
{
	/* The kernel only reads it. */
	struct iovec iov = {(void *)(uintptr_t)bytes, size};
	int r = -ECANCELED;

	/* Before the look at `stop`, see push_is_still. */
	atomic_store(&p->storing, true);
	if (!atomic_load(&p->stop))
		r = p->store(p->ctx, ino, 0, &iov, 1);
	atomic_store(&p->storing, false);
	if (r == 0)
		push_worth_pushed(p->worth, kind, size);
	else if (r == -ENOENT)
		push_worth_unknown(p->worth, kind);
	else if (r != -ENOMEM && !atomic_exchange(&p->stop, true))
		atomic_store(&p->failed, r);
	if (r < 0)
		push_worth_forget(p->worth, ino);
	return r;
}

static void run_parcel(void *arg)
{
	struct parcel *x = arg;
	const unsigned char *at = x->bytes->data;

	for (unsigned i = 0; i < x->n; i++) {
		store_one(x->p, x->kind, x->ino[i], at, x->size[i]);
		at += x->size[i];
	}
	buf_unref(x->bytes);
	free(x);
}

static void run_batch(void *arg)
{
	struct push_batch *b = arg;

	for (unsigned i = 0; i < b->n; i++) {
		uint32_t size = (uint32_t)b->bytes[i]->size;

		b->result[i] = store_one(b->p, PUSH_KNOWN, b->ino[i],
					 b->bytes[i]->data, size);
		if (b->result[i] == 0)
			push_worth_ask(b->p->worth, PUSH_KNOWN, b->ino[i], size,
				       UINT64_MAX);
	}
	b->done(b);
}

/* The storer opens no files, see fuse_store.c: room is asked for here. */
void push_batch(struct push *p, struct push_batch *b)
{
	b->p = p;
	if (push_room(p->room)) {
		pool_submit(p->storer, run_batch, b);
		return;
	}
	counter_add(COUNT_PUSH_REFUSED, b->n);
	for (unsigned i = 0; i < b->n; i++)
		b->result[i] = -EAGAIN;
	b->done(b);
}

uint64_t push_may_fill(const struct push *p)
{
	return push_room(p->room);
}

uint64_t push_file_max(const struct push *p)
{
	return p->options.file_max;
}

/* ---- gathering ------------------------------------------------------------ */

void push_flush(struct push *p, struct parcel **parcel)
{
	if (*parcel)
		pool_submit(p->storer, run_parcel, steal_pointer(parcel));
}

/* With room for `size` bytes. */
static struct parcel *parcel_with_room(struct push *p, struct parcel **parcel,
				       enum push_kind kind, uint64_t size)
{
	struct parcel *x = *parcel;

	if (x && (x->n == PARCEL_FILES || x->bytes->capacity - x->used < size))
		push_flush(p, parcel);
	if (*parcel)
		return *parcel;
	x = malloc(sizeof *x);
	if (!x)
		return NULL;
	x->p = p;
	x->kind = kind;
	x->n = 0;
	x->used = 0;
	x->bytes = buf_new(max_u64(PARCEL_BYTES, size), NULL);
	if (x->bytes)
		return *parcel = x;
	free(x);
	return NULL;
}

static void copy_reply(const struct reply *r, unsigned char *to)
{
	for (unsigned i = 0; i < r->niov; i++) {
		memcpy(to, r->iov[i].iov_base, r->iov[i].iov_len);
		to += r->iov[i].iov_len;
	}
}

void push_one(struct push *p, const struct whole *w, enum push_kind kind,
	      struct parcel **parcel)
{
	struct reply reply;
	struct parcel *x;

	if (whole_read(p->fs, w, &reply) < 0) {
		push_worth_forget(p->worth, w->ino);
		return;
	}
	x = parcel_with_room(p, parcel, kind, w->size);
	if (x) {
		copy_reply(&reply, x->bytes->data + x->used);
		x->ino[x->n] = w->ino;
		x->size[x->n++] = (uint32_t)w->size;
		x->used += w->size;
	} else {
		push_worth_forget(p->worth, w->ino);
	}
	fs_release(p->fs, &reply);
}

/* One that is next.  False: there is no room for more, or there are no more. */
static bool find_one(struct push *p, uint64_t ino, const struct whole *of,
		     struct parcel **parcel)
{
	enum push_verdict v;
	struct whole w;

	if (push_worth_seen(p->worth, ino) || whole_find(p->fs, ino, &w) < 0 ||
	    !w.size || w.size > p->options.file_max)
		return true;
	if (!whole_is_sibling(&w, of))
		return false;
	v = push_worth_ask(p->worth, PUSH_AHEAD, ino, w.size,
			   push_room(p->room));
	if (v == PUSH_IT)
		push_one(p, &w, PUSH_AHEAD, parcel);
	else if (v == PUSH_FULL)
		counter_add(COUNT_PUSH_REFUSED, 1);
	return v != PUSH_FULL;
}

static void find_range(const struct job *j)
{
	const struct push_range *x = &j->range;
	struct parcel *parcel = NULL;
	uint64_t ino = x->first;
	struct whole of;

	if (whole_find(j->p->fs, j->near, &of) < 0)
		return;
	for (unsigned i = 0; i < x->n && push_may(j->p); i++) {
		if (i == x->mark)
			push_worth_hold(j->p->worth, PUSH_AHEAD, ino);
		else if (!find_one(j->p, ino, &of, &parcel))
			break;
		ino += (uint64_t)x->step;
	}
	push_flush(j->p, &parcel);
}

static void run_job(void *arg)
{
	struct job *j = arg;

	store_thread.guesses = true;
	if (!push_may(j->p))
		;
	else if (j->kind == PUSH_NEAR)
		push_near(j->p, j->near);
	else
		find_range(j);
	free(j);
}

static bool submit(struct push *p, enum push_kind kind, uint64_t near,
		   struct push_range range)
{
	struct job *j = malloc(sizeof *j);

	if (!j)
		return false;
	*j = (struct job){p, kind, near, range};
	if (pool_try_submit(p->finders, run_job, j))
		return true;
	free(j);
	return false;
}

/* ---- what others call ----------------------------------------------------- */

/* What is next, in slices, so that several threads decode. */
static void ahead(struct push *p, uint64_t ino)
{
	struct push_range all, part;

	if (!push_ahead_note(p->ahead, p->worth, ino, &all) ||
	    !push_worth_try(p->worth, PUSH_AHEAD))
		return;
	while (all.n) {
		part = all;
		part.n = (unsigned)min_u64(all.n, SLICE);
		if (part.mark >= part.n)
			part.mark = part.n;
		if (!submit(p, PUSH_AHEAD, ino, part))
			return;
		all.first += (uint64_t)all.step * part.n;
		all.n -= part.n;
		all.mark = all.mark >= part.n ? all.mark - part.n : all.n;
	}
}

/* The storing thread has no log any more, see fuse_store.c. */
static void say_failed(struct push *p)
{
	int code =
		atomic_exchange_explicit(&p->failed, 0, memory_order_relaxed);

	if (code == -EOWNERDEAD)
		log_warn("small files are not given to the kernel ahead any "
			 "more: tensorfs-guard, who watches over that, is "
			 "gone");
	else if (code)
		log_info("small files are not given to the kernel ahead any "
			 "more: %s",
			 strerror(-code));
}

void push_note(struct push *p, uint64_t ino, uint64_t off,
	       const struct reply *r, bool waited)
{
	if (!p || !r->len)
		return;
	if (!push_may(p)) {
		say_failed(p);
		if (p->first)
			p->first(p->first_ctx, ino);
		return;
	}
	if (off == 0)
		push_worth_read(p->worth, ino);
	if (p->first && p->first(p->first_ctx, ino))
		return;
	if (r->size > p->options.file_max)
		return;
	if (off + r->len == r->size && push_near_is_due(p, r, waited))
		submit(p, PUSH_NEAR, ino, (struct push_range){0});
	if (off == 0)
		ahead(p, ino);
}

void push_set_first(struct push *p, push_first_fn *first, void *ctx)
{
	p->first = first;
	p->first_ctx = ctx;
}

void push_stop(struct push *p)
{
	if (p)
		atomic_store(&p->stop, true);
}

bool push_is_still(const struct push *p)
{
	return !p || (atomic_load(&p->stop) && !atomic_load(&p->storing));
}

void push_drain(struct push *p)
{
	pool_drain(p->finders);
	pool_drain(p->storer);
}

int push_new(struct push **out, struct fs *fs, const struct push_options *o,
	     push_store_fn *store, void *ctx, struct error *err)
{
	struct push *p = calloc(1, sizeof *p);
	int r;

	*out = NULL;
	if (!p)
		return error_set(err, -ENOMEM, "out of memory");
	p->fs = fs;
	p->options = *o;
	if (!p->options.threads)
		p->options.threads =
			(unsigned)min_u64(system_cores(), THREADS_MAX);
	if (!p->options.file_max)
		p->options.file_max = PUSH_FILE_MAX;
	p->store = store;
	p->ctx = ctx;
	p->room = push_room_new(o->memory, o->memory_ctx);
	p->worth = push_worth_new();
	p->ahead = push_ahead_new();
	r = p->room && p->worth && p->ahead
		    ? 0
		    : error_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = pool_new(&p->storer, "store", 1, PARCELS, err);
	if (r == 0)
		r = pool_new(&p->finders, "push", p->options.threads, JOBS,
			     err);
	if (r < 0) {
		push_free(p);
		return r;
	}
	*out = p;
	return 0;
}

void push_free(struct push *p)
{
	if (!p)
		return;
	push_stop(p);
	pool_free(p->finders);
	pool_free(p->storer);
	push_ahead_free(p->ahead);
	push_worth_free(p->worth);
	push_room_free(p->room);
	free(p);
}
