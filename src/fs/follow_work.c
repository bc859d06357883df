/* SPDX-License-Identifier: BSD-2-Clause */
/* Files made ready: given to the kernel, or kept in the cache. */
/*
 *	small      a copy of its bytes, which the storer of push gives to the kernel
 *	           a mark, or unknown to the kernel: the copy is kept in the cache, counted
 *	           in its budget, and READs are answered with it
 *	large      its chunks are held in the cache, where they cannot be evicted; if they have
 *	           much else in them, a copy is kept
 *
 * What is kept may take a part of the cache, and where there is no room it is later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/number.h"
#include "fs/follow_private.h"
#include "store/thread.h"

/* Chunks that other threads decode meanwhile. */
#define AHEAD 4
/* So many files more refused than taken, at most: half of it says that the kernel takes next
 * to nothing, an eighth that it does again. */
#define RELUCTANT 64
/* What is kept of a file is counted with at least so many bytes: beside its copy there is
 * what belongs to it here and in the cache. */
#define KEPT_LEAST 256

/* Files on their way to the kernel. */
struct batch {
	struct push_batch push; /* first member */
	struct follow *f;
	struct batch *next;
	struct track *track[PUSH_BATCH];
	uint64_t position[PUSH_BATCH];
};

/* What is kept of a file. */
struct kept {
	struct follow *f;
	uint64_t ino, size;
	struct buf *copy;     /* in the cache */
	struct reply *chunks; /* of a large file */
};

/* ---- keeping ------------------------------------------------------------- */

static void drop(void *ctx, void *held)
{
	struct kept *k = held;
	struct follow *f = k->f;

	(void)ctx;
	f->kept -= k->size;
	if (k->copy) {
		buf_unref(k->copy);
		cache_drop(store_cache(f->fs->store), f->fs->kept, k->ino);
	}
	if (k->chunks) {
		fs_release(f->fs, k->chunks);
		free(k->chunks);
	}
	free(k);
}

static struct kept *kept_new(struct follow *f, uint64_t ino, uint64_t size)
{
	struct kept *k;

	size = max_u64(size, KEPT_LEAST);
	k = size <= f->keep_max - f->kept ? calloc(1, sizeof *k) : NULL;
	if (!k)
		return NULL;
	*k = (struct kept){.f = f, .ino = ino, .size = size};
	f->kept += size;
	counter_add(COUNT_ORDER_KEPT, 1);
	return k;
}

static int load_copy(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err)
{
	const struct buf *from = ctx;
	struct buf *b = buf_new(from->size, gauge);

	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	memcpy(b->data, from->data, from->size);
	*out = b;
	return 0;
}

/* NULL: there is no room. */
static struct kept *keep_copy(struct follow *f, uint64_t ino, struct buf *bytes)
{
	struct kept *k = kept_new(f, ino, bytes->size);
	struct error err = {0};

	if (k && cache_get(store_cache(f->fs->store), f->fs->kept, ino,
			   buf_cost(bytes->size), 0, load_copy, bytes, &k->copy,
			   &err) < 0) {
		drop(NULL, k);
		return NULL;
	}
	return k;
}

/* ---- reading ------------------------------------------------------------- */

static struct buf *copy_reply(const struct reply *r)
{
	struct buf *b = buf_new(r->len, NULL);
	unsigned char *to = b ? b->data : NULL;

	for (unsigned i = 0; b && i < r->niov; i++) {
		memcpy(to, r->iov[i].iov_base, r->iov[i].iov_len);
		to += r->iov[i].iov_len;
	}
	return b;
}

/* All of a file, in *r. */
static int read_whole(struct follow *f, const struct whole *w, struct reply *r)
{
	uint64_t before = store_thread.loads;
	int code = whole_read(f->fs, w, r);

	counter_add(COUNT_ORDER_DECODED, store_thread.loads - before);
	return code;
}

static bool is_small(const struct follow *f, uint64_t size)
{
	return size <= (f->push ? push_file_max(f->push) : PUSH_FILE_MAX);
}

/* ---- what a course asks --------------------------------------------------- */

/* The chunk that a file ends in. */
static bool chunk_of(struct whole *w, struct whole_chunk *out)
{
	const struct files_ops *ops = w->node.files->ops;
	struct error err = {0};

	if (ops->prepare &&
	    ops->prepare(w->node.files, w->node.node, 0, w->size, &err) < 0)
		return false;
	*out = whole_end(w);
	return true;
}

static bool file(void *ctx, uint32_t sample, struct course_file *out)
{
	const struct track *t = ctx;
	struct whole_chunk x;
	struct whole w;

	if (whole_find(t->f->fs, track_ino(t, sample), &w) < 0 || !w.size ||
	    !chunk_of(&w, &x))
		return false;
	out->size = w.size;
	if (x.set)
		out->key = (x.set->id * UINT64_C(0x9e3779b97f4a7c15) ^
			    (x.index + 1) * UINT64_C(0xbf58476d1ce4e5b9)) |
			   1;
	/* The kernel reads ahead in what is stored as it is. */
	return x.set || is_small(t->f, w.size);
}

const struct course_ops follow_ops = {.file = file, .drop = drop};

/* ---- the kernel ---------------------------------------------------------- */

static void come_back(struct push_batch *p)
{
	struct batch *b = (struct batch *)p;
	struct follow *f = b->f;

	pthread_mutex_lock(&f->lock);
	b->next = f->done;
	f->done = b;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
}

void follow_flush(struct follow *f)
{
	struct batch *b = f->batch;

	f->batch = NULL;
	if (b)
		push_batch(f->push, &b->push);
}

/* Takes the reference.  False: no memory. */
static bool hand_over(struct track *t, uint64_t position, uint64_t ino,
		      struct buf *bytes)
{
	struct follow *f = t->f;
	struct batch *b = f->batch;

	if (!b) {
		b = f->batch = calloc(1, sizeof *b);
		if (!b) {
			buf_unref(bytes);
			return false;
		}
		b->f = f;
		b->push.done = come_back;
	}
	t->in_flight++;
	b->track[b->push.n] = t;
	b->position[b->push.n] = position;
	b->push.ino[b->push.n] = ino;
	b->push.bytes[b->push.n++] = bytes;
	if (b->push.n == PUSH_BATCH)
		follow_flush(f);
	return true;
}

/* Did the kernel take one? */
static void note_taken(struct track *t, bool taken)
{
	t->last_refused = !taken;
	if (taken && t->reluctant)
		t->reluctant--;
	else if (!taken && t->reluctant < RELUCTANT)
		t->reluctant++;
	if (t->refused ? t->reluctant <= RELUCTANT / 8
		       : t->reluctant >= RELUCTANT / 2) {
		t->refused = !t->refused;
		t->f->changed = true;
	}
}

/* What the kernel does not know is kept, if there is room. */
static void settle_one(struct batch *b, unsigned i)
{
	struct track *t = b->track[i];
	struct kept *k;

	t->in_flight--;
	note_taken(t, b->push.result[i] == 0);
	if (b->push.result[i] == 0)
		counter_add(COUNT_ORDER_READY, 1);
	if (!t->course)
		return;
	if (b->push.result[i] == 0) {
		course_done(t->course, b->position[i], COURSE_READY, NULL);
		return;
	}
	k = keep_copy(b->f, b->push.ino[i], b->push.bytes[i]);
	course_done(t->course, b->position[i], k ? COURSE_READY : COURSE_LATER,
		    k);
	if (k)
		counter_add(COUNT_ORDER_READY, 1);
}

static void batch_free(struct batch *b)
{
	for (unsigned i = 0; i < b->push.n; i++)
		buf_unref(b->push.bytes[i]);
	free(b);
}

void follow_settle(struct batch *list)
{
	while (list) {
		struct batch *b = list;

		list = b->next;
		for (unsigned i = 0; i < b->push.n; i++)
			settle_one(b, i);
		batch_free(b);
	}
}

void follow_discard(struct batch *list)
{
	while (list) {
		struct batch *b = list;

		list = b->next;
		batch_free(b);
	}
}

/* ---- work ---------------------------------------------------------------- */

/* Others decode what comes after this chunk. */
static void want_next(struct track *t)
{
	uint32_t sample[AHEAD];
	unsigned n = course_ahead(t->course, sample, AHEAD);
	struct store *s = t->f->fs->store;
	uint64_t ahead = 0, bytes;

	for (unsigned i = 0; i < n; i++) {
		struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
		struct whole_chunk x;
		struct whole w;

		if (whole_find(t->f->fs, track_ino(t, sample[i]), &w) < 0 ||
		    !w.size || !chunk_of(&w, &x) || !x.set)
			continue;
		e.u.chunk.set = (struct chunk_set *)(uintptr_t)x.set;
		e.u.chunk.index = x.index;
		e.u.chunk.slice = EXTENT_WHOLE;
		if (!store_want(s, &e, ahead, &bytes))
			return;
		ahead += bytes;
	}
}

/* Are the chunks that hold it not much more than it is?  What was put together is in none. */
static bool holds_little(const struct reply *r)
{
	const struct buf *last = NULL;
	uint64_t held = 0;

	for (unsigned i = 0; i < r->npins; i++)
		if (r->pins[i].buf && r->pins[i].buf != last) {
			last = r->pins[i].buf;
			held += last->size;
		}
	return !r->gathered && held <= r->len + r->len / 2;
}

/* All of a file, read into the buffer that counts. */
struct whole_load {
	struct follow *f;
	const struct whole *w;
};

static int load_whole(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	struct whole_load *l = ctx;
	const struct files_ops *ops = l->w->node.files->ops;
	struct buf *b = buf_new(l->w->size, gauge);
	int r = b ? 0 : error_set(err, -ENOMEM, "out of memory");

	if (r == 0 && ops->prepare)
		r = ops->prepare(l->w->node.files, l->w->node.node, 0,
				 l->w->size, err);
	if (r == 0)
		r = gather_window(l->f->fs, &l->w->node, 0, b->data, l->w->size,
				  err);
	if (r < 0)
		buf_unref(b);
	else
		*out = b;
	return r;
}

/* What is too large for one read to pin would be copied twice beside the budget. */
static enum course_result keep_vast(struct follow *f, const struct whole *w,
				    struct kept **kept)
{
	struct whole_load l = {f, w};
	uint64_t before = store_thread.loads;
	struct error err = {0};
	int r;

	*kept = kept_new(f, w->ino, w->size);
	if (!*kept)
		return COURSE_LATER;
	r = cache_get(store_cache(f->fs->store), f->fs->kept, w->ino,
		      buf_cost(w->size), 0, load_whole, &l, &(*kept)->copy,
		      &err);
	counter_add(COUNT_ORDER_DECODED, store_thread.loads - before);
	if (r == 0)
		return COURSE_READY;
	drop(NULL, *kept);
	*kept = NULL;
	return COURSE_FAILED;
}

/* Its chunks stay where they are. */
static enum course_result hold_large(struct follow *f, const struct whole *w,
				     struct reply *r, struct kept **kept)
{
	*kept = kept_new(f, w->ino, w->size);
	if (!*kept) {
		fs_release(f->fs, r);
		return COURSE_LATER;
	}
	(*kept)->chunks = r;
	return COURSE_READY;
}

static enum course_result make_ready(struct track *t,
				     const struct course_step *s,
				     const struct whole *w, struct reply **r,
				     struct kept **kept)
{
	struct follow *f = t->f;
	bool large = !is_small(f, w->size);
	struct buf *bytes;

	if ((large || !f->push || t->last_refused) &&
	    max_u64(w->size, KEPT_LEAST) > f->keep_max - f->kept)
		return COURSE_LATER;
	if (large && w->size > f->fs->pin_budget)
		return keep_vast(f, w, kept);
	if (read_whole(f, w, *r) < 0)
		return COURSE_FAILED;
	if (large && holds_little(*r)) {
		enum course_result how = hold_large(f, w, *r, kept);

		if (how == COURSE_READY)
			*r = NULL; /* the pins are in it */
		return how;
	}
	bytes = copy_reply(*r);
	fs_release(f->fs, *r);
	if (!bytes)
		return COURSE_FAILED;
	if (s->keep || large || !f->push)
		*kept = keep_copy(f, w->ino, bytes);
	if (*kept || large || !f->push) {
		buf_unref(bytes);
		return *kept ? COURSE_READY : COURSE_LATER;
	}
	return hand_over(t, s->position, w->ino, bytes) ? COURSE_SENT
							: COURSE_FAILED;
}

enum follow_what follow_work(struct track *t)
{
	struct follow *f = t->f;
	enum course_result how = COURSE_FAILED;
	struct kept *kept = NULL;
	struct course_step s;
	struct reply *r;
	struct whole w;

	if (!course_next(t->course, &s))
		return FOLLOW_NOTHING;
	r = malloc(sizeof *r);
	if (r && whole_find(f->fs, track_ino(t, s.sample), &w) == 0) {
		if (s.begins)
			want_next(t);
		how = make_ready(t, &s, &w, &r, &kept);
	}
	free(r);
	if (kept)
		counter_add(COUNT_ORDER_READY, 1);
	course_done(t->course, s.position, how, kept);
	return how == COURSE_LATER ? FOLLOW_LATER : FOLLOW_MORE;
}
