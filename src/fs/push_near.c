/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbours of a file whose chunk was decoded. */
/*
 * Files that lie together in a chunk mostly have names, and so numbers, that follow
 * each other: samples of a tensor do, and what packers write in order of names.  So
 * nothing needs to be kept of which files a chunk has: going out from the one that was
 * read, in both directions, each is mapped and the cache is asked, until the first that
 * is not all there or has no chunk in common with it.
 */
#include "base/counters.h"
#include "fs/push_private.h"

/* Of one walk in one direction. */
#define STEPS 4096
#define BYTES (UINT64_C(16) << 20)
/* Numbers in a row that are no files: directories, second names. */
#define OTHERS 64
/* After so many walks that found nothing, most are not begun. */
#define BARREN 8
#define BARREN_TURN 16

/* Was this chunk's turn before?  Notes it. */
static bool was_walked(struct push *p, const struct whole_chunk *c)
{
	uint64_t key = (c->set->id * 0x9e3779b97f4a7c15 ^ c->index) *
		       0xbf58476d1ce4e5b9;
	_Atomic uint64_t *slot = &p->walked[(key >> 40) % PUSH_WALKED];

	return atomic_exchange_explicit(slot, key, memory_order_relaxed) == key;
}

/* A chunk may also have been decoded ahead of the reader, by nobody's READ. */
bool push_near_is_due(struct push *p, uint64_t ino, bool waited)
{
	struct whole_chunk c;
	struct whole w;

	if (whole_find(p->fs, ino, &w) < 0 || !w.size ||
	    w.size > p->options.file_max)
		return false;
	c = whole_end(&w);
	if (!c.set || (was_walked(p, &c) && !waited))
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
	bool found;

	if (whole_find(p->fs, ino, &from) < 0 || !from.node.node ||
	    !whole_is_decoded(p->fs, &from))
		return;
	found = walk(p, &from, 1, &parcel);
	found |= walk(p, &from, -1, &parcel);
	push_flush(p, &parcel);
	if (found)
		atomic_store(&p->barren, 0);
	else
		atomic_fetch_add(&p->barren, 1);
}
