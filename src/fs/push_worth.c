/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files to push, by what became of those that were. */
/*
 * The kernel says nothing of a read that finds its pages.  So of the files that
 * could be pushed a few are held back, as good as at random, and their READs tell:
 *
 *     guessed   p p p p H p p p p p p H p p p  H  ->  a READ: a hit for all of its kind
 *               '-------' '-----------'              since the one before
 *                bytes that H stands for
 *
 * One that is not read before so many bytes were pushed after it as may wait at all
 * is a miss: by then the kernel has other uses for the memory.  Before that nobody can
 * tell: who reads a data set in random order reads the neighbours of his first file
 * anywhere in the epoch.  So what bounds wrong guesses is memory first (the bytes that
 * all H stand for that are still open), and then the share of hits among those that
 * are settled: below a third, only one occasion in PROBE is used, to see whether
 * that has changed.  An H that waits while memory is full is given up after a while,
 * or else nothing would ever be pushed again.
 *
 * That a file was pushed is remembered in a table that forgets: a file is not pushed
 * twice for each chunk that it touches, and a READ of it means that its pages went
 * before they were of use.
 */
#include "fs/push_worth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/number.h"

#define HOLD_BITS 5 /* one of 32 is held back */
#define SEEN_BITS 18
#define OPEN_BITS 14 /* held back and not settled */
#define OPEN (1u << OPEN_BITS)
#define PROBE 16
#define ENOUGH 8   /* settled ones make a verdict */
#define RECENT 128 /* ... and so many old ones are forgotten by half */
#define PATIENCE 32

/* The two low bits of an entry of `seen`. */
enum seen { SEEN_NOT, SEEN_READ, SEEN_PUSHED };

struct held {
	uint64_t ino; /* 0: settled */
	uint64_t stands_for, mark;
	enum push_kind kind;
};
struct kind {
	uint64_t since; /* bytes pushed since one was held back */
	unsigned hits, misses;
	_Atomic bool poor; /* few are right */
	_Atomic unsigned tries;
};
struct push_worth {
	uint64_t salt;
	pthread_mutex_t lock; /* all below but atomics */
	struct kind kind[PUSH_KINDS];
	uint64_t pushed; /* bytes ever */
	uint64_t open;   /* bytes that open ones stand for, and since them */
	unsigned refused;
	uint32_t head, n; /* of the ring `held` */
	struct held held[OPEN];
	uint32_t find[OPEN];           /* ino -> place in the ring */
	_Atomic uint64_t marked[OPEN]; /* ino of the place, read unlocked */
	_Atomic uint64_t seen[1u << SEEN_BITS];
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ (x >> 32);
}

struct push_worth *push_worth_new(void)
{
	struct push_worth *w = calloc(1, sizeof *w);
	struct timespec t;

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	clock_gettime(CLOCK_MONOTONIC, &t);
	w->salt = (uint64_t)t.tv_nsec;
	return w;
}

void push_worth_free(struct push_worth *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* ---- what was seen -------------------------------------------------------- */

static _Atomic uint64_t *seen_at(struct push_worth *w, uint64_t key)
{
	return &w->seen[key >> (64 - SEEN_BITS)];
}

static enum seen seen_get(struct push_worth *w, uint64_t ino)
{
	uint64_t key = mix(ino);
	uint64_t e =
		atomic_load_explicit(seen_at(w, key), memory_order_relaxed);

	return (e | 3) == (key | 3) ? (enum seen)(e & 3) : SEEN_NOT;
}

static void seen_set(struct push_worth *w, uint64_t ino, enum seen what)
{
	uint64_t key = mix(ino);

	atomic_store_explicit(seen_at(w, key),
			      (key & ~UINT64_C(3)) | (uint64_t)what,
			      memory_order_relaxed);
}

bool push_worth_has(struct push_worth *w, uint64_t ino)
{
	return seen_get(w, ino) == SEEN_PUSHED;
}

bool push_worth_seen(struct push_worth *w, uint64_t ino)
{
	return seen_get(w, ino) != SEEN_NOT;
}

void push_worth_forget(struct push_worth *w, uint64_t ino)
{
	if (seen_get(w, ino) == SEEN_PUSHED)
		seen_set(w, ino, SEEN_NOT);
}

/* ---- what is open --------------------------------------------------------- */

static uint32_t *find_at(struct push_worth *w, uint64_t ino)
{
	return &w->find[mix(ino) & (OPEN - 1)];
}

static void settle(struct push_worth *w, struct held *h, bool hit)
{
	struct kind *k = &w->kind[h->kind];

	if (!h->ino)
		return;
	atomic_store_explicit(&w->marked[mix(h->ino) & (OPEN - 1)], 0,
			      memory_order_relaxed);
	h->ino = 0;
	w->open -= min_u64(w->open, h->stands_for);
	*(hit ? &k->hits : &k->misses) += 1;
	if (k->hits + k->misses >= RECENT) {
		k->hits /= 2;
		k->misses /= 2;
	}
	atomic_store(&k->poor,
		     k->hits + k->misses >= ENOUGH && k->hits * 2 < k->misses);
}

static void settle_oldest(struct push_worth *w)
{
	settle(w, &w->held[w->head % OPEN], false);
	w->head++;
	w->n--;
}

/* Those behind which `room` bytes were pushed have been waiting in vain. */
static void settle_old(struct push_worth *w, uint64_t room)
{
	while (w->n) {
		const struct held *h = &w->held[w->head % OPEN];

		if (h->ino && w->pushed - h->mark <= room)
			return;
		settle_oldest(w);
	}
}

static void hold(struct push_worth *w, enum push_kind kind, uint64_t ino)
{
	struct kind *k = &w->kind[kind];
	uint32_t *find = find_at(w, ino), place;

	/* Whoever has the place in `find` cannot be found any more: unknown. */
	if (*find - w->head < w->n) {
		struct held *other = &w->held[*find % OPEN];

		if (other->ino && find_at(w, other->ino) == find) {
			w->open -= min_u64(w->open, other->stands_for);
			other->ino = 0;
		}
	}
	if (w->n == OPEN)
		settle_oldest(w);
	place = w->head + w->n++;
	*find = place;
	w->held[place % OPEN] = (struct held){.ino = ino,
					      .stands_for = k->since,
					      .mark = w->pushed,
					      .kind = kind};
	k->since = 0;
	atomic_store_explicit(&w->marked[mix(ino) & (OPEN - 1)], ino,
			      memory_order_relaxed);
	counter_add(COUNT_PUSH_HELD, 1);
}

/* Memory is full: the oldest one waits in vain; with none, nobody can tell of what was
 * pushed since. */
static void give_up_one(struct push_worth *w)
{
	if (w->n) {
		settle_oldest(w);
		return;
	}
	for (unsigned i = 0; i < PUSH_KINDS; i++)
		w->kind[i].since = 0;
	w->open = 0;
}

/* ---- verdicts ------------------------------------------------------------- */

bool push_worth_try(struct push_worth *w, enum push_kind kind)
{
	struct kind *k = &w->kind[kind];

	return !atomic_load(&k->poor) ||
	       atomic_fetch_add(&k->tries, 1) % PROBE == 0;
}

enum push_verdict push_worth_ask(struct push_worth *w, enum push_kind kind,
				 uint64_t ino, uint64_t size, uint64_t room)
{
	if (kind == PUSH_KNOWN) {
		seen_set(w, ino, SEEN_PUSHED);
		return PUSH_IT;
	}
	if (seen_get(w, ino))
		return PUSH_SEEN;
	lock_scope(&w->lock);
	settle_old(w, room);
	if (size > room || w->open > room - size) {
		if (++w->refused % PATIENCE == 0)
			give_up_one(w);
		return PUSH_FULL;
	}
	if (kind == PUSH_NEAR && !(mix(ino ^ w->salt) >> (64 - HOLD_BITS))) {
		if (atomic_load(&w->marked[mix(ino) & (OPEN - 1)]) != ino)
			hold(w, kind, ino);
		return PUSH_HOLD;
	}
	seen_set(w, ino, SEEN_PUSHED);
	return PUSH_IT;
}

void push_worth_hold(struct push_worth *w, enum push_kind kind, uint64_t ino)
{
	lock_scope(&w->lock);
	if (w->kind[kind].since)
		hold(w, kind, ino);
}

void push_worth_pushed(struct push_worth *w, enum push_kind kind, uint64_t size)
{
	counter_add(COUNT_FILES_PUSHED, 1);
	counter_add(COUNT_BYTES_PUSHED, size);
	if (kind == PUSH_KNOWN)
		return;
	lock_scope(&w->lock);
	w->pushed += size;
	w->open += size;
	w->kind[kind].since += size;
}

/* Taken for a miss: whoever reads without listing gets no neighbours. */
void push_worth_unknown(struct push_worth *w, enum push_kind kind)
{
	struct kind *k = &w->kind[kind];

	counter_add(COUNT_PUSH_UNKNOWN, 1);
	if (kind == PUSH_KNOWN)
		return;
	lock_scope(&w->lock);
	k->misses++;
	if (k->hits + k->misses >= RECENT) {
		k->hits /= 2;
		k->misses /= 2;
	}
	atomic_store(&k->poor,
		     k->hits + k->misses >= ENOUGH && k->hits * 2 < k->misses);
}

void push_worth_read(struct push_worth *w, uint64_t ino)
{
	enum seen was = seen_get(w, ino);
	uint32_t *find;

	if (was == SEEN_PUSHED)
		counter_add(COUNT_PUSH_VAIN, 1);
	if (was != SEEN_READ)
		seen_set(w, ino, SEEN_READ);
	if (atomic_load_explicit(&w->marked[mix(ino) & (OPEN - 1)],
				 memory_order_relaxed) != ino)
		return;
	counter_add(COUNT_PUSH_HELD_READ, 1);
	lock_scope(&w->lock);
	find = find_at(w, ino);
	if (*find - w->head < w->n && w->held[*find % OPEN].ino == ino)
		settle(w, &w->held[*find % OPEN], true);
}
