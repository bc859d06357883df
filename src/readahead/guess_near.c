/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the neighbours of a file ahead: the other files of its decoded chunk. */
/*
 * Files of one chunk mostly have adjacent names, and so adjacent inode numbers: samples
 * of a tensor do, and so do files that a packer wrote in order of names.  So no table of
 * the files of a chunk is needed: starting from the file that was read, a walk in each
 * direction maps each file and asks the cache, until the first file that is not
 * completely decoded or has no chunk in common with the file that was read.
 *
 * Reading a file ahead is a loss when no reader wants it.  A reader of all files, in a
 * random order, soon comes back to each chunk; a reader of a tenth of them seldom does.
 * So an account is kept for each chunk set: the bytes of all chunks that were begun,
 * without the file that was asked for first in each, and how many of these bytes were
 * asked for, too.  Neighbours are read ahead once that is an eighth: a reader of a tenth
 * stays below it, a reader of all files passes it early.
 *
 * The neighbours in a chunk that was evicted and decoded again are read ahead at once:
 * decoding costs as much as reading dozens of its files ahead, and the page cache keeps
 * them when the daemon's cache does not.
 */
#include "base/number.h"
#include "readahead/guess_private.h"

/* Most files and bytes of a walk in one direction. */
#define STEPS 4096
#define BYTES (UINT64_C(8) << 20)
/* A walk ends after this many numbers in a row that are not files, but directories or
 * second names. */
#define OTHERS 64
/* One byte in this many must have been asked for. */
#define SHARE 8
/* In bytes.  An account that gets larger is halved, so that it follows readers that
 * change. */
#define FORGET (UINT64_C(1) << 36)
/* The most bytes with which a chunk counts. */
#define UNIT (UINT64_C(1) << 30)
/* The bits of an entry of `chunks`: the number of READs, whether one of them decoded the
 * chunk, and whether its neighbours were read ahead. */
#define COUNT_MASK UINT64_C(1023)
#define DECODED UINT64_C(1024)
#define ASKED UINT64_C(2048)
#define OF_CHUNK (COUNT_MASK | DECODED | ASKED)

static uint64_t near_counter(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* Set a counter.  What other threads add meanwhile may be lost. */
static void near_counter_set(_Atomic uint64_t *n, uint64_t to)
{
	atomic_store_explicit(n, to, memory_order_relaxed);
}

static void near_counter_add(_Atomic uint64_t *n, uint64_t more)
{
	atomic_fetch_add_explicit(n, more, memory_order_relaxed);
}

/* Account for the `nth` READ in a chunk of `unit` bytes, of a file of `size` bytes. */
static void near_account_read(struct guess_account *a, uint64_t nth,
			      uint64_t unit, uint64_t size)
{
	if (nth > 1) {
		near_counter_add(&a->read, size);
		return;
	}
	near_counter_add(&a->others, unit - size);
	if (near_counter(&a->others) > FORGET) {
		near_counter_set(&a->others, near_counter(&a->others) / 2);
		near_counter_set(&a->read, near_counter(&a->read) / 2);
	}
}

/* Return the entry of the chunk in which `r` ends; set *a to its account and *was to
 * what the entry holds. */
static _Atomic uint64_t *near_find_chunk(struct guess *g, const struct reply *r,
					 struct guess_account **a,
					 uint64_t *was)
{
	uint64_t key = ((r->set->id * 0x9e3779b97f4a7c15 ^ r->index) *
			0xbf58476d1ce4e5b9) &
		       ~OF_CHUNK;
	_Atomic uint64_t *slot = &g->chunks[(key >> 40) % GUESS_CHUNKS];

	*a = &g->accounts[r->set->id % GUESS_ACCOUNTS];
	*was = near_counter(slot);
	if ((*was & ~OF_CHUNK) != key)
		*was = key;
	return slot;
}

/* Return the bytes of the chunk, or 0 if they are unknown or the chunk has no room for
 * another file. */
static uint64_t near_chunk_bytes(const struct reply *r)
{
	uint64_t unit = r->set ? min_u64(near_counter(&r->set->unit), UNIT) : 0;

	return unit > r->size ? unit : 0;
}

enum guess_due guess_near_note(struct guess *g, const struct reply *r,
			       bool waited)
{
	uint64_t unit = near_chunk_bytes(r), was, nth;
	struct guess_account *a;
	_Atomic uint64_t *slot;

	if (!unit)
		return GUESS_NOT;
	slot = near_find_chunk(g, r, &a, &was);
	nth = (was & COUNT_MASK) + 1;
	/* If two threads do this at once, one READ may not count. */
	near_counter_set(slot, (nth <= COUNT_MASK ? was + 1 : was) |
				       (waited ? DECODED : 0));
	if (!(was & ASKED))
		near_account_read(a, nth, unit, r->size);
	if (waited && was & DECODED)
		return GUESS_NOW;
	return was & ASKED || nth < 2 ||
			       near_counter(&a->read) <
				       near_counter(&a->others) / SHARE
		       ? GUESS_NOT
		       : GUESS_IDLE;
}

/* Readers will find the neighbours in the page cache, without a READ that could be
 * counted, so an eighth of their bytes counts as read. */
void guess_near_begin(struct guess *g, const struct reply *r)
{
	struct guess_account *a;
	uint64_t unit = near_chunk_bytes(r), was, others, read;
	_Atomic uint64_t *slot = near_find_chunk(g, r, &a, &was);

	others = unit ? unit - r->size : 0;
	read = was & COUNT_MASK ? ((was & COUNT_MASK) - 1) * r->size : 0;
	if (!(was & ASKED) && others / SHARE > read)
		near_counter_add(&a->read, others / SHARE - read);
	/* If the chunk is decoded twice more, its files are asked for again. */
	near_counter_set(slot, (was | ASKED) & ~DECODED);
}

static void near_walk(struct guess_list *list, const struct whole *from,
		      int step)
{
	struct fs *fs = list->guess->fs;
	uint64_t ino = from->ino, bytes = 0;
	unsigned others = 0;

	for (unsigned i = 0; i < STEPS && bytes < BYTES; i++) {
		struct whole w;

		ino += (uint64_t)(int64_t)step;
		if (whole_find(fs, ino, &w) < 0 || !w.size) {
			if (++others > OTHERS)
				break;
			continue;
		}
		others = 0;
		if (!whole_is_sibling(&w, from))
			break;
		if (w.size > GUESS_FILE_MAX)
			continue;
		if (!whole_is_decoded(fs, &w) || !whole_shares(&w, from))
			break;
		bytes += w.size;
		if (!guess_add(list, ino))
			break;
	}
}

void guess_near(struct guess *g, uint64_t ino)
{
	struct guess_list list = {.guess = g};
	struct whole from;

	if (whole_find(g->fs, ino, &from) < 0 || !from.node.node)
		return;
	/* A file that is stored uncompressed has no decoded neighbours, either. */
	if (whole_is_decoded(g->fs, &from)) {
		near_walk(&list, &from, 1);
		near_walk(&list, &from, -1);
	}
	guess_flush(&list);
}
