/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbours of a file whose chunk was decoded. */
/*
 * Files that lie together in a chunk mostly have names, and so numbers, that follow
 * each other: samples of a tensor do, and what packers write in order of names.  So
 * nothing needs to be kept of which files a chunk has: going out from the one that was
 * read, in both directions, each is mapped and the cache is asked, until the first that
 * is not all there or has no chunk in common with it.
 *
 * Pushing costs about a third of answering, so it is a loss for who reads few files of each
 * chunk, and who that is, is known the later the better.  While there is room in the
 * cache nothing is in a hurry: the chunk is there when an eighth of its files was asked
 * for.  When it is full, or a chunk had to be decoded again, they are pushed at once, or
 * else the chunk would be gone by then.
 *
 * By chance an eighth of one chunk is read by who reads a tenth of all, where a chunk has few
 * files.  So of all chunks of the set that were begun a sixteenth must have been read as
 * well, without the first file of each, by which it came to be among them.  Of a chunk whose
 * files were pushed no more is heard: it counts as if an eighth had been read.
 */
#include "base/counters.h"
#include "base/number.h"
#include "fs/push_private.h"

/* Of one walk in one direction. */
#define STEPS 4096
#define BYTES (UINT64_C(16) << 20)
/* Numbers in a row that are no files: directories, second names. */
#define OTHERS 64
/* After so many walks that found nothing, most are not begun. */
#define BARREN 8
#define BARREN_TURN 16
/* Whoever was given one file of so many of a chunk gets the others. */
#define SHARE 8
/* ... if he was given one byte of so many of all chunks of the set that were begun. */
#define MANY 16
/* Of so many bytes half are forgotten: habits change. */
#define FORGET_BYTES (UINT64_C(1) << 36)
/* A chunk counts with so many at most. */
#define UNIT_BYTES (UINT64_C(1) << 30)
/* Of an entry of `chunks`: READs; and that the others' turn was. */
#define COUNT_MASK UINT64_C(1023)
#define OFFERED UINT64_C(1024)

static uint64_t value(_Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void add(_Atomic uint64_t *n, uint64_t more)
{
	atomic_fetch_add_explicit(n, more, memory_order_relaxed);
}

/* What others add meanwhile may be lost. */
static void forget_half(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, value(n) / 2, memory_order_relaxed);
}

/* The `nth` READ in a chunk, of a file of `size` of its `unit` bytes. */
static void note_other(struct push_account *a, uint64_t unit, uint64_t size,
		       uint64_t nth)
{
	if (nth > 1) {
		add(&a->read, size);
		return;
	}
	add(&a->others, unit - size);
	if (value(&a->others) > FORGET_BYTES) {
		forget_half(&a->others);
		forget_half(&a->read);
	}
}

/* The others were pushed when `nth` had been read. */
static void note_offered(struct push_account *a, uint64_t unit, uint64_t size,
			 uint64_t nth)
{
	uint64_t had = size * (nth - 1), counts = (unit - size) / SHARE;

	if (counts > had)
		add(&a->read, counts - had);
}

/* Is it one who reads many of the files of each chunk? */
static bool reads_many(struct push_account *a)
{
	return value(&a->read) >= value(&a->others) / MANY;
}

/* Counts a READ of a file that ends in this chunk; is it time for the others? */
static bool note(struct push *p, const struct reply *r, uint64_t unit,
		 bool again, bool now)
{
	uint64_t size = min_u64(r->size, unit);
	uint64_t enough =
		min_u64(max_u64(unit / r->size / SHARE, 2), COUNT_MASK);
	uint64_t key = ((r->set->id * 0x9e3779b97f4a7c15 ^ r->index) *
			0xbf58476d1ce4e5b9) &
		       ~(COUNT_MASK | OFFERED);
	_Atomic uint64_t *slot = &p->chunks[(key >> 40) % PUSH_CHUNKS];
	struct push_account *a = &p->accounts[r->set->id % PUSH_ACCOUNTS];
	uint64_t was = value(slot), n;
	bool due, displaces = false;

	if ((was & ~(COUNT_MASK | OFFERED)) != key) {
		displaces = was && !(was & OFFERED);
		was = key;
	}
	if ((was & COUNT_MASK) < COUNT_MASK)
		was++;
	n = was & COUNT_MASK;
	/* One that comes in the place of another that was begun may have been there before,
	 * and would be counted each time. */
	if (!(was & OFFERED) && (n > 1 || !displaces))
		note_other(a, unit, size, n);
	due = now || (again && n > 1) ||
	      (!(was & OFFERED) && n >= enough && reads_many(a));
	if (due && !(was & OFFERED))
		note_offered(a, unit, size, n);
	/* Of two at once one may not count. */
	atomic_store_explicit(slot, was | (due ? OFFERED : 0),
			      memory_order_relaxed);
	return due;
}

/* A chunk may also have been decoded ahead of the reader, by nobody's READ. */
bool push_near_is_due(struct push *p, const struct reply *r, bool waited)
{
	uint64_t unit;
	bool full;

	if (!r->set)
		return false;
	unit = atomic_load_explicit(&r->set->unit, memory_order_relaxed);
	full = waited && cache_is_full(store_cache(p->fs->store), unit);
	if (!note(p, r, min_u64(unit, UNIT_BYTES), waited, full))
		return false;
	if (atomic_load_explicit(&p->barren, memory_order_relaxed) >= BARREN &&
	    atomic_fetch_add(&p->turn, 1) % BARREN_TURN)
		return false;
	return push_worth_try(p->worth, PUSH_NEAR);
}

/* False: no more of them now. */
static bool offer(struct push *p, const struct whole *w, struct parcel **parcel)
{
	switch (push_worth_ask(p->worth, PUSH_NEAR, w->ino, w->size,
			       push_room(p->room))) {
	case PUSH_IT:
		push_one(p, w, PUSH_NEAR, parcel);
		return true;
	case PUSH_HOLD:
	case PUSH_SEEN:
		return true;
	case PUSH_FULL:
		counter_add(COUNT_PUSH_REFUSED, 1);
		return false;
	}
	return false;
}

/* True: there are neighbours. */
static bool walk(struct push *p, const struct whole *from, int step,
		 struct parcel **parcel)
{
	uint64_t ino = from->ino, bytes = 0;
	unsigned others = 0;

	for (unsigned i = 0; i < STEPS && bytes < BYTES && push_may(p); i++) {
		struct whole w;

		ino += (uint64_t)(int64_t)step;
		if (whole_find(p->fs, ino, &w) < 0 || !w.size) {
			if (++others > OTHERS)
				break;
			continue;
		}
		others = 0;
		if (!whole_is_sibling(&w, from))
			break;
		if (w.size > p->options.file_max)
			continue;
		if (!whole_is_decoded(p->fs, &w) || !whole_shares(&w, from))
			break;
		bytes += w.size;
		if (!offer(p, &w, parcel))
			break;
	}
	return bytes > 0;
}

void push_near(struct push *p, uint64_t ino)
{
	struct parcel *parcel = NULL;
	struct whole from;
	bool found = false;

	if (whole_find(p->fs, ino, &from) < 0 || !from.node.node)
		return;
	/* What is stored as it is has no decoded neighbours, either. */
	if (whole_is_decoded(p->fs, &from)) {
		found = walk(p, &from, 1, &parcel);
		found |= walk(p, &from, -1, &parcel);
		push_flush(p, &parcel);
	}
	if (found)
		atomic_store(&p->barren, 0);
	else
		atomic_fetch_add(&p->barren, 1);
}
