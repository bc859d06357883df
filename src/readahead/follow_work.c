/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes files ready: has the kernel read them, or keeps them in the cache. */
/*
 *	asked for   The file's chunk is decoded, and readahead.c asks the kernel, whose
 *	            READs find the chunk in the cache.
 *	kept        A mark, or any file while the kernel is short of memory: a copy is
 *	            kept in the cache, counted in its budget, and answers READs.
 *	neither     A mark that is larger than what one read may pin: its readers wait.
 *
 * Kept files may take only a part of the cache; without room a file is made ready later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/number.h"
#include "readahead/follow_private.h"
#include "readahead/guess.h"
#include "store/thread.h"

/* Most chunks that other threads decode meanwhile. */
#define AHEAD 4
/* The least number of bytes with which a kept file is counted: beside its copy there are
 * its structures here and in the cache. */
#define KEPT_LEAST 256

/* A file that is kept in the cache. */
struct kept {
	struct follow *f;
	uint64_t ino, size;
	struct buf *copy; /* a reference to its copy in the cache */
};

/* ---- keeping ------------------------------------------------------------- */

static void follow_drop_kept(void *ctx, void *held)
{
	struct kept *k = held;
	struct follow *f = k->f;

	(void)ctx;
	f->kept -= k->size;
	if (k->copy) {
		buf_unref(k->copy);
		cache_drop(store_cache(f->fs->store), f->fs->kept, k->ino);
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
		return error_no_memory(err, "a copy of a file");
	memcpy(b->data, from->data, from->size);
	*out = b;
	return 0;
}

/* Keep a copy of the bytes of a file; return NULL if there is no room. */
static struct kept *follow_keep_copy(struct follow *f, uint64_t ino,
				     struct buf *bytes)
{
	struct kept *k = kept_new(f, ino, bytes->size);
	struct error err = {0};

	if (k && cache_get(store_cache(f->fs->store), f->fs->kept, ino,
			   buf_cost(bytes->size), 0, load_copy, bytes, &k->copy,
			   &err) < 0) {
		follow_drop_kept(NULL, k);
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

/* Count the chunks that this thread decoded since it had decoded `before`. */
static void count_decoded(uint64_t before)
{
	counter_add(COUNT_ORDER_DECODED, store_thread.loads - before);
}

/* ---- what a course asks --------------------------------------------------- */

static bool follow_file(void *ctx, uint32_t sample, struct course_file *out)
{
	const struct track *t = ctx;
	struct whole_chunk x;
	struct whole w;

	if (whole_find(t->f->fs, track_ino(t, sample), &w) < 0 || !w.size ||
	    !whole_end(&w, &x))
		return false;
	out->size = w.size;
	if (x.set)
		out->key = (x.set->id * UINT64_C(0x9e3779b97f4a7c15) ^
			    (x.index + 1) * UINT64_C(0xbf58476d1ce4e5b9)) |
			   1;
	/* In a large file that is stored uncompressed the kernel reads ahead by
	 * itself. */
	return x.set || w.size <= GUESS_FILE_MAX;
}

const struct course_ops follow_ops = {.file = follow_file,
				      .drop = follow_drop_kept};

/* ---- the kernel ---------------------------------------------------------- */

void follow_flush(struct follow *f)
{
	/* If this fails, the helper is gone, which was logged. */
	if (f->n_asked && f->ask(f->ctx, f->asked, f->n_asked) < 0) {
		f->ask = NULL;
		/* This makes the next check of memory share the window anew. */
		f->room = 0;
	}
	f->n_asked = 0;
}

static enum course_result follow_ask_for(struct follow *f, uint64_t ino)
{
	f->asked[f->n_asked++] = ino;
	if (f->n_asked == READAHEAD_FILES)
		follow_flush(f);
	counter_add(COUNT_ORDER_READY, 1);
	return COURSE_SENT;
}

/* ---- work ---------------------------------------------------------------- */

/* Let other threads decode the chunks that come next. */
static void follow_want_next(struct track *t)
{
	uint32_t sample[AHEAD];
	unsigned n = course_ahead(t->course, sample, AHEAD);
	struct fs *fs = t->f->fs;
	uint64_t ahead = 0;
	struct whole w;

	for (unsigned i = 0; i < n; i++)
		if (whole_find(fs, track_ino(t, sample[i]), &w) == 0 &&
		    w.size && !whole_want(fs, &w, &ahead))
			return;
}

/* Read a file and keep a copy of its bytes, in *kept. */
static enum course_result follow_keep_file(struct follow *f,
					   const struct whole *w,
					   struct reply *r, struct kept **kept)
{
	uint64_t before = store_thread.loads;
	struct buf *bytes;
	int code;

	if (max_u64(w->size, KEPT_LEAST) > f->keep_max - f->kept)
		return COURSE_LATER;
	code = whole_read(f->fs, w, r);
	count_decoded(before);
	if (code < 0)
		return COURSE_FAILED;
	bytes = copy_reply(r);
	fs_release(f->fs, r);
	if (!bytes)
		return COURSE_FAILED;
	*kept = follow_keep_copy(f, w->ino, bytes);
	buf_unref(bytes);
	if (!*kept)
		return COURSE_LATER;
	counter_add(COUNT_ORDER_READY, 1);
	return COURSE_READY;
}

static enum course_result follow_make_ready(struct follow *f, bool mark,
					    const struct whole *w,
					    struct reply *r, struct kept **kept)
{
	bool asks = f->ask && f->room;

	if (w->size > f->fs->pin_budget)
		return mark || !asks ? COURSE_FAILED
				     : follow_ask_for(f, w->ino);
	if (mark || !asks)
		return follow_keep_file(f, w, r, kept);
	/* Chunks of a large file are decoded by the workers that answer its READs. */
	if (w->size <= GUESS_FILE_MAX) {
		uint64_t before = store_thread.loads;
		bool decoded = whole_decode(f->fs, w);

		count_decoded(before);
		if (!decoded)
			return COURSE_FAILED;
	}
	return follow_ask_for(f, w->ino);
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
		if (s.begins) {
			follow_flush(f);
			follow_want_next(t);
		}
		how = follow_make_ready(f, s.keep, &w, r, &kept);
	}
	free(r);
	course_done(t->course, s.position, how, kept);
	return how == COURSE_LATER ? FOLLOW_LATER : FOLLOW_MORE;
}
