/* SPDX-License-Identifier: BSD-2-Clause */
/* The first-pass cache: what the first pass over a stream decoded, held until it is
 * read. */
/*
 * Without an index everything is decoded once to learn the seek points, and once more
 * when it is read.  So the beginning of the stream, as a rule all of it, is kept until
 * it is read:
 *
 *	|==============================|- - - - - - - - - -|
 *	 kept: pages that are used       addresses, given back
 *	|-------|------|-------|------|--
 *	 window: a buffer over its bytes when it is taken, once
 *
 * During the pass the ends of windows are not known (small windows are joined later),
 * so bytes are kept contiguously, at addresses that are reserved for as many as there
 * may be.  A window that is taken belongs to its reader or to the chunk cache; with its
 * last reference its pages are given back, except pages that it shares with a
 * neighbour: these are given back when the cache is freed.  The mapping is shared and
 * its pages are removed, not just unmapped, because helper processes that are forked
 * later would keep copies of private pages. (After stream_first_pass_no_fork forked processes
 * do not have the mapping at all; but the daemon itself was forked after the pass.)
 *
 * All streams share one bound, which counts the kept bytes that were not taken.  When
 * the chunk cache needs room, these bytes go first, from the end: no reader has asked
 * for them.
 */
#include "stream/first_pass.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"

/* Memory is reserved in steps of STEP bytes, AHEAD bytes before it is needed. */
#define STEP ((size_t)2 << 20)
#define AHEAD (4 * STEP)

struct first_pass {
	_Atomic unsigned refs;
	unsigned char *data;
	size_t reserved; /* in bytes of addresses */
	size_t room, n;  /* bytes that there is room for, and that are there */
	_Atomic size_t counts; /* bytes that count in the bound */
	/* The bytes count in the budget of caches, too. */
	bool in_budget;
	/* Posted for each step whose pages are to be touched, and at the end. */
	sem_t steps;
	pthread_t thread; /* the thread that touches pages */
	bool threaded;
	_Atomic bool stop;
	bool ended;       /* no more bytes are added */
	uint64_t windows; /* complete windows in these bytes */
	uint64_t *out;    /* bytes before each window, and of all */
	/* Windows before this one may still be given up. */
	uint64_t last;
	/* Next in the list of caches whose pass has ended. */
	struct first_pass *next;
	/* A bit for each window, set when it is taken or given up. */
	_Atomic uint8_t *took;
};

static struct {
	_Atomic uint64_t most, used;
	_Atomic bool in_budget, alone;
	/* Protects the list, and `last` of caches in it. */
	pthread_mutex_t lock;
	struct first_pass *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

void stream_first_pass_limit(uint64_t bytes, bool in_budget)
{
	atomic_store(&all.most, bytes);
	atomic_store(&all.in_budget, in_budget);
	atomic_store(&all.alone, false);
}

uint64_t stream_first_pass_bytes(void)
{
	return atomic_load(&all.used);
}

/* ---- room ---------------------------------------------------------------- */

static bool first_pass_room_take(struct first_pass *k, size_t n)
{
	uint64_t used = atomic_fetch_add(&all.used, n) + n;

	if (used > atomic_load(&all.most)) {
		atomic_fetch_sub(&all.used, n);
		return false;
	}
	if (k->in_budget)
		atomic_fetch_add(&buf_extra_bytes, n);
	atomic_fetch_add(&k->counts, n);
	return true;
}

static void first_pass_room_give(struct first_pass *k, size_t n)
{
	atomic_fetch_sub(&k->counts, n);
	atomic_fetch_sub(&all.used, n);
	if (k->in_budget)
		atomic_fetch_sub(&buf_extra_bytes, n);
}

static size_t first_pass_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- the pass ------------------------------------------------------------ */

/* Thread: touch the pages of each reserved step.  Fresh pages cost as much time as
 * decoding does. */
static void *first_pass_touch_pages(void *arg)
{
	struct first_pass *k = arg;
	size_t at = 0;

	for (;;) {
		while (sem_wait(&k->steps) < 0)
			;
		if (atomic_load(&k->stop) ||
		    !system_populate(k->data + at, STEP))
			return NULL;
		at += STEP;
	}
}

static void first_pass_touch_begin(struct first_pass *k)
{
	sigset_t every, old;

	sem_init(&k->steps, 0, 0);
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &old);
	k->threaded = pthread_create(&k->thread, NULL, first_pass_touch_pages,
				     k) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void first_pass_touch_end(struct first_pass *k)
{
	if (!k->threaded)
		return;
	atomic_store(&k->stop, true);
	sem_post(&k->steps);
	pthread_join(k->thread, NULL);
	k->threaded = false;
}

struct first_pass *first_pass_new(void)
{
	uint64_t most = atomic_load(&all.most);
	struct first_pass *k;
	void *p;

	most -= min_u64(most, stream_first_pass_bytes());
	most = min_u64(most, SIZE_MAX / 2) / STEP * STEP;
	k = most ? calloc(1, sizeof *k) : NULL;
	if (!k)
		return NULL;
	p = mmap(NULL, most, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(k);
		return NULL;
	}
	k->data = p;
	k->reserved = most;
	k->in_budget = atomic_load(&all.in_budget);
	if (atomic_load(&all.alone))
		madvise(p, most, MADV_DONTFORK);
	atomic_init(&k->refs, 1);
	first_pass_touch_begin(k);
	return k;
}

void first_pass_add(struct first_pass *k, const void *data, size_t n)
{
	if (!k || k->ended)
		return;
	while (k->room < k->reserved && k->room - k->n < n + AHEAD &&
	       first_pass_room_take(k, STEP)) {
		k->room += STEP;
		sem_post(&k->steps);
	}
	if (n > k->room - k->n) {
		k->ended = true;
		return;
	}
	memcpy(k->data + k->n, data, n);
	k->n += n;
}

/* Remove the pages that are wholly in [from, to), in all processes that have them. */
static void first_pass_remove_pages(struct first_pass *k, size_t from,
				    size_t to)
{
	size_t page = first_pass_page_size();

	to = to / page * page;
	from = (from + page - 1) / page * page;
	if (from < to)
		madvise(k->data + from, to - from, MADV_REMOVE);
}

/* Give back the memory and addresses from byte `n` on. */
static void first_pass_trim(struct first_pass *k, size_t n)
{
	size_t page = first_pass_page_size();
	size_t stay = (n + page - 1) / page * page;

	first_pass_remove_pages(k, stay, k->reserved);
	if (stay < k->reserved &&
	    munmap(k->data + stay, k->reserved - stay) == 0)
		k->reserved = stay;
	first_pass_room_give(k, k->room - n);
	k->room = k->n = n;
}

/* Drop window `i` if it was not taken.  Return its bytes, or 0 if it was taken. */
static uint64_t first_pass_give_up(struct first_pass *k, uint64_t i)
{
	uint8_t bit = (uint8_t)(1 << i % 8);
	uint64_t size = k->out[i + 1] - k->out[i];

	if (atomic_fetch_or(&k->took[i / 8], bit) & bit)
		return 0;
	first_pass_remove_pages(k, k->out[i], k->out[i + 1]);
	first_pass_room_give(k, size);
	return size;
}

static void first_pass_shrink(uint64_t bytes)
{
	uint64_t done = 0;

	if (!stream_first_pass_bytes())
		return;
	lock_scope(&all.lock);
	for (struct first_pass *k = all.first; k && done < bytes; k = k->next)
		while (k->in_budget && k->last && done < bytes)
			done += first_pass_give_up(k, --k->last);
}

static void first_pass_list(struct first_pass *k)
{
	lock_scope(&all.lock);
	k->last = k->windows;
	k->next = all.first;
	all.first = k;
	atomic_store(&buf_extra_shrink, first_pass_shrink);
}

void stream_first_pass_no_fork(void)
{
	lock_scope(&all.lock);
	atomic_store(&all.alone, true);
	for (struct first_pass *k = all.first; k; k = k->next)
		if (k->reserved)
			madvise(k->data, k->reserved, MADV_DONTFORK);
}

static void first_pass_unlist(struct first_pass *k)
{
	struct first_pass **p = &all.first;

	lock_scope(&all.lock);
	while (*p && *p != k)
		p = &(*p)->next;
	if (*p)
		*p = k->next;
}

/* Note where windows begin.  Return false when memory is out. */
static bool first_pass_note_windows(struct first_pass *k,
				    const struct stream_point *points,
				    uint64_t n)
{
	k->took = calloc(n / 8 + 1, 1);
	k->out = malloc((n + 1) * sizeof *k->out);
	if (!k->took || !k->out)
		return false;
	for (uint64_t i = 0; i < n; i++)
		k->out[i] = points[i].out;
	k->out[n] = n ? points[n - 1].out + points[n - 1].size : 0;
	return true;
}

void first_pass_end(struct first_pass *k, const struct stream_point *points,
		    uint64_t n)
{
	uint64_t whole = 0;

	if (!k)
		return;
	k->ended = true;
	first_pass_touch_end(k);
	while (whole < n && points[whole].size <= k->n - points[whole].out)
		whole++;
	if (!first_pass_note_windows(k, points, whole))
		whole = 0;
	k->windows = whole;
	first_pass_trim(k, whole ? (size_t)k->out[whole] : 0);
	/* Reading a bad window is an error, so its bytes are not needed. */
	for (uint64_t i = 0; i < whole; i++)
		if (points[i].flags & POINT_BAD)
			first_pass_give_up(k, i);
	first_pass_list(k);
}

/* ---- afterwards ---------------------------------------------------------- */

static void first_pass_unref(struct first_pass *k)
{
	if (atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	first_pass_remove_pages(k, 0, k->reserved);
	if (k->reserved)
		munmap(k->data, k->reserved);
	sem_destroy(&k->steps);
	free(k->took);
	free(k->out);
	free(k);
}

/* Give back the pages of a window; called with the last reference to its buffer. */
static void first_pass_release_window(void *ctx, void *data, size_t size)
{
	struct first_pass *k = ctx;
	size_t from = (size_t)((unsigned char *)data - k->data);

	first_pass_remove_pages(k, from, from + size);
	first_pass_unref(k);
}

struct buf *first_pass_take(struct first_pass *k, const struct stream_point *p,
			    uint64_t i, _Atomic uint64_t *gauge)
{
	uint8_t bit = (uint8_t)(1 << i % 8);
	struct buf *b;

	if (!k || i >= k->windows ||
	    atomic_fetch_or(&k->took[i / 8], bit) & bit)
		return NULL;
	atomic_fetch_add(&k->refs, 1);
	b = buf_around(k->data + p->out, p->size, p->size, gauge,
		       first_pass_release_window, k);
	first_pass_room_give(k, p->size);
	/* When memory is out the window is decoded anew. */
	if (!b)
		first_pass_release_window(k, k->data + p->out, p->size);
	return b;
}

void first_pass_free(struct first_pass *k)
{
	if (!k)
		return;
	first_pass_touch_end(k);
	first_pass_unlist(k);
	first_pass_room_give(k, atomic_load(&k->counts));
	first_pass_unref(k);
}
