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
/* Of an entry of `chunks`: READs; and that the others' turn was. */
#define COUNT_MASK UINT64_C(1023)
#define OFFERED UINT64_C(1024)

/* Counts a READ of a file that ends in this chunk; is it time for the others? */
static bool note(struct push *p, const struct reply *r, unsigned enough,
		 bool again, bool now)
{
	uint64_t key = ((r->set->id * 0x9e3779b97f4a7c15 ^ r->index) *
			0xbf58476d1ce4e5b9) &
		       ~(COUNT_MASK | OFFERED);
	_Atomic uint64_t *slot = &p->chunks[(key >> 40) % PUSH_CHUNKS];
	uint64_t was = atomic_load_explicit(slot, memory_order_relaxed);
	bool due;

	if ((was & ~(COUNT_MASK | OFFERED)) != key)
		was = key;
	if ((was & COUNT_MASK) < COUNT_MASK)
		was++;
	due = now || (again && (was & COUNT_MASK) > 1) ||
	      (!(was & OFFERED) && (was & COUNT_MASK) >= enough);
	/* Of two at once one may not count. */
	atomic_store_explicit(slot, was | (due ? OFFERED : 0),
			      memory_order_relaxed);
	return due;
}

/* A chunk may also have been decoded ahead of the reader, by nobody's READ. */
bool push_near_is_due(struct push *p, const struct reply *r, bool waited)
{
	uint64_t unit, enough;
	bool full;

	if (!r->set)
		return false;
	unit = atomic_load_explicit(&r->set->unit, memory_order_relaxed);
	enough = min_u64(max_u64(unit / r->size / SHARE, 2), COUNT_MASK);
	full = waited && cache_is_full(store_cache(p->fs->store), unit);
	if (!note(p, r, (unsigned)enough, waited, full))
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
