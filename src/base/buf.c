/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference-counted bytes, recycled so that a steady state never faults. */
#include "base/buf.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/system.h"

_Atomic uint64_t buf_extra_bytes;
buf_extra_shrink_fn *_Atomic buf_extra_shrink;

/*
 * A buffer of less than LARGE bytes is one malloc: header and bytes.  A larger one has
 * its bytes in pages of its own: malloc would raise its own threshold and then keep freed
 * chunks in its arenas, where fragmentation makes the resident size drift away from what
 * the gauges say.
 *
 * A fresh page costs a fault, which for chunks of a megabyte takes as long as decoding
 * them.  So the buffers freed last are kept, a few megabytes of them, and a full cache
 * that evicts one chunk for each one it loads keeps using the same pages.  `kept` is
 * ordered by age.  A new buffer is taken from the youngest, whose pages are likely still
 * in the CPU's cache; when there is too much, the oldest are freed first, so sizes that
 * are no longer in use drain away.  Where two buffers together exceed the usual few
 * megabytes, the limit is raised to hold two, as far as buf_reuse_large permits.  The
 * table is small and its capacities are side by side: a search is one pass over at most
 * two kilobytes.  Fresh pages are populated with one call, which takes the kernel a third
 * less time than a fault for each page.
 *
 * The kernel limits the number of mappings of a process (65 530 by default).  At that
 * limit mmap fails, and so does an munmap that would have to split one mapping in two.
 * Then malloc is asked instead of mmap, and in place of munmap the pages are at least
 * given back with MADV_DONTNEED.
 */
#define LARGE ((size_t)64 << 10)
#define HUGE ((size_t)2 << 20)
#define KEPT_MAX 256
#define REUSE_DEFAULT ((size_t)8 << 20)

/* A buffer whose bytes are outside of this struct: in pages of their own, or in memory
 * that buf_around was given.  A small buffer is a bare struct buf with its bytes behind
 * it. */
struct large {
	struct buf b;
	bool mapped; /* false: malloc'ed, because mmap failed */
	void (*release)(void *ctx, void *data, size_t capacity);
	void *ctx;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	unsigned n;
	size_t bytes, limit, most;
	size_t extra; /* the part of `bytes` that buf_extra_bytes counts */
	size_t capacity[KEPT_MAX];
	struct buf *buf[KEPT_MAX];
} kept = {
	.limit = REUSE_DEFAULT,
}; /* under kept_lock */

/* Offset of a small buffer's bytes: behind the header, aligned. */
#define SMALL_HEAD                                          \
	((sizeof(struct buf) + _Alignof(max_align_t) - 1) / \
	 _Alignof(max_align_t) * _Alignof(max_align_t))

static size_t buf_page_size(void)
{
	static _Atomic size_t size;
	size_t s = atomic_load_explicit(&size, memory_order_relaxed);

	if (!s) {
		s = (size_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&size, s, memory_order_relaxed);
	}
	return s;
}

size_t buf_cost(size_t size)
{
	size_t page = buf_page_size();

	if (size < LARGE)
		return size;
	if (size > (size_t)PTRDIFF_MAX - page)
		return SIZE_MAX;
	return (size + page - 1) / page * page;
}

static struct buf *small_new(size_t size)
{
	struct buf *b = malloc(SMALL_HEAD + size);

	if (!b)
		return NULL;
	b->data = (unsigned char *)b + SMALL_HEAD;
	b->capacity = size;
	return b;
}

/* Map `capacity` bytes.  From HUGE on they begin where a huge page may begin, and the
 * kernel is asked for huge pages, which saves 512 faults for each.  The rest behind the
 * last whole huge page keeps small pages, so that neighbouring buffers share no huge
 * page, and a freed buffer's memory is really free. */
static void *pages_new(size_t capacity)
{
	size_t more = capacity < HUGE ? 0 : HUGE - buf_page_size(), before;
	unsigned char *p;

	if (capacity > (size_t)PTRDIFF_MAX - more)
		return MAP_FAILED;
	p = mmap(NULL, capacity + more, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return p;
	if (!more) {
		system_populate(p, capacity);
		return p;
	}
	before = (HUGE - (uintptr_t)p % HUGE) % HUGE;
	/* An munmap that fails here leaves unused addresses behind, but no memory. */
	if (before)
		munmap(p, before);
	if (before < more)
		munmap(p + before + capacity, more - before);
	p += before;
	madvise(p, capacity / HUGE * HUGE, MADV_HUGEPAGE);
	return p;
}

static struct buf *large_new(size_t capacity)
{
	struct large *l = malloc(sizeof *l);
	void *p;

	if (!l)
		return NULL;
	l->release = NULL;
	p = pages_new(capacity);
	l->mapped = p != MAP_FAILED;
	if (!l->mapped)
		p = malloc(capacity);
	if (!p) {
		free(l);
		return NULL;
	}
	l->b.data = p;
	l->b.capacity = capacity;
	return &l->b;
}

static void large_free(struct buf *b)
{
	struct large *l = (struct large *)b;

	if (l->release)
		l->release(l->ctx, b->data, b->capacity);
	else if (!l->mapped)
		free(b->data);
	else if (munmap(b->data, b->capacity) != 0)
		madvise(b->data, b->capacity, MADV_DONTNEED);
	free(l);
}

/* Count the kept bytes beyond REUSE_DEFAULT in the budget of caches.  The caller holds
 * kept_lock. */
static void count_beside(void)
{
	size_t now =
		kept.bytes > REUSE_DEFAULT ? kept.bytes - REUSE_DEFAULT : 0;

	atomic_fetch_add(&buf_extra_bytes, now - kept.extra);
	kept.extra = now;
}

/* Remove and return kept buffer `i`.  The caller holds kept_lock. */
static struct buf *kept_remove(unsigned i)
{
	struct buf *b = kept.buf[i];
	size_t after = kept.n - i - 1;

	kept.bytes -= kept.capacity[i];
	memmove(kept.buf + i, kept.buf + i + 1, after * sizeof *kept.buf);
	memmove(kept.capacity + i, kept.capacity + i + 1,
		after * sizeof *kept.capacity);
	kept.n--;
	count_beside();
	return b;
}

/* Take a kept buffer of at least `need` bytes that wastes at most a quarter: an exact fit
 * if there is one, else the tightest, and of equals the youngest.  Return NULL if none
 * fits. */
static struct buf *kept_take(size_t need)
{
	size_t most = need + need / 4;
	unsigned best = KEPT_MAX;

	lock_scope(&kept_lock);
	for (unsigned i = kept.n; i-- > 0;) {
		size_t c = kept.capacity[i];

		if (c < need || c > most)
			continue;
		best = i;
		most = c - 1;
		if (c == need)
			break;
	}
	return best < KEPT_MAX ? kept_remove(best) : NULL;
}

/* Remove and return the oldest kept buffer while `more` bytes do not fit beside what is
 * kept; NULL once they fit.  The caller frees it outside the lock. */
static struct buf *kept_overflow(size_t more)
{
	lock_scope(&kept_lock);
	if (!kept.n)
		return NULL;
	if (kept.n < KEPT_MAX && more <= kept.limit &&
	    kept.bytes <= kept.limit - more)
		return NULL;
	return kept_remove(0);
}

static bool kept_add(struct buf *b)
{
	lock_scope(&kept_lock);
	if (kept.n == KEPT_MAX || b->capacity > kept.limit ||
	    kept.bytes > kept.limit - b->capacity)
		return false;
	kept.buf[kept.n] = b;
	kept.capacity[kept.n] = b->capacity;
	kept.bytes += b->capacity;
	kept.n++;
	count_beside();
	return true;
}

/* Raise the limit to twice the largest buffer: one fills while another drains.  Return
 * true if a buffer of this capacity may be kept at all. */
static bool kept_wants(size_t capacity)
{
	lock_scope(&kept_lock);
	if (capacity > kept.limit / 2 && capacity <= kept.most / 2)
		kept.limit = 2 * capacity;
	return capacity <= kept.limit;
}

static void large_give_up(struct buf *b)
{
	struct buf *old;

	if (!((struct large *)b)->release && kept_wants(b->capacity)) {
		while ((old = kept_overflow(b->capacity)))
			large_free(old);
		if (kept_add(b))
			return;
	}
	large_free(b);
}

static void buf_init(struct buf *b, size_t size, _Atomic uint64_t *gauge)
{
	b->size = b->useful = size;
	b->gauge = gauge;
	atomic_init(&b->refs, 1);
	atomic_init(&b->served, 0);
	if (gauge)
		atomic_fetch_add(gauge, b->capacity);
}

struct buf *buf_new(size_t size, _Atomic uint64_t *gauge)
{
	size_t cost = buf_cost(size);
	struct buf *b;

	if (cost == SIZE_MAX)
		return NULL;
	if (cost < LARGE) {
		b = small_new(cost);
	} else {
		b = kept_take(cost);
		if (!b)
			b = large_new(cost);
	}
	if (!b)
		return NULL;
	buf_init(b, size, gauge);
	return b;
}

struct buf *buf_around(void *data, size_t size, size_t capacity,
		       _Atomic uint64_t *gauge,
		       void (*release)(void *ctx, void *data, size_t capacity),
		       void *ctx)
{
	struct large *l = malloc(sizeof *l);

	if (!l)
		return NULL;
	*l = (struct large){.b = {.data = data, .capacity = capacity},
			    .release = release,
			    .ctx = ctx};
	buf_init(&l->b, size, gauge);
	return &l->b;
}

struct buf *buf_ref(struct buf *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

void buf_unref(struct buf *b)
{
	_Atomic uint64_t *gauge;
	size_t capacity;

	if (!b ||
	    atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	gauge = b->gauge;
	capacity = b->capacity;
	if (b->data == (unsigned char *)b + SMALL_HEAD)
		free(b);
	else
		large_give_up(b);
	if (gauge)
		atomic_fetch_sub(gauge, capacity);
}

void buf_reuse_limit(size_t bytes)
{
	struct buf *old;

	pthread_mutex_lock(&kept_lock);
	kept.limit = bytes;
	pthread_mutex_unlock(&kept_lock);
	while ((old = kept_overflow(0)))
		large_free(old);
}

void buf_reuse_large(size_t bytes)
{
	lock_scope(&kept_lock);
	kept.most = bytes;
}

void buf_trim(void)
{
	struct buf *old;

	while ((old = kept_overflow(SIZE_MAX)))
		large_free(old);
}
