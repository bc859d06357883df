/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells how much memory may be filled ahead of readers. */
/*
 * Pages that are read ahead are page cache like any other: clean, and the first to be
 * reclaimed.  But other pages are reclaimed to make room for them, and in a full control
 * group these are the reader's own memory.  So reading ahead ends well before that: when
 * less than an eighth of the memory is available, or tasks of the group stall for want
 * of memory (PSI).  It goes on once a sixth is available, so that it does not flicker.
 */
#include "readahead/room.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/system.h"

#define SHARE 4 /* one byte in this many that are available may be filled */
#define LOW 8   /* memory is short below this part of all memory ... */
#define HIGH 6  /* ... until there is this part again */
/* Nanoseconds between measurements, and percent of the time that tasks may stall. */
#define LOOK UINT64_C(200000000)
#define STALLED 20

struct room {
	room_memory_fn *memory;
	void *ctx;
	/* Nanoseconds of the clock at the next measurement. */
	_Atomic uint64_t next;
	_Atomic uint64_t room;
	/* For tests: the memory function is called each time. */
	bool always;
	_Atomic bool is_short;
};

static uint64_t memory_now(void *ctx, uint64_t *total)
{
	struct system_headroom h;

	(void)ctx;
	*total = system_memory();
	if (system_stalled() > STALLED)
		return 0;
	system_headroom(&h);
	return min_u64(system_available(), h.left);
}

struct room *room_new(room_memory_fn *memory, void *ctx)
{
	struct room *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->memory = memory ? memory : memory_now;
	r->ctx = ctx;
	r->always = memory != NULL;
	return r;
}

void room_free(struct room *r)
{
	free(r);
}

static void room_update(struct room *r)
{
	uint64_t total, left = r->memory(r->ctx, &total);
	bool was = atomic_load(&r->is_short);
	bool is = left < total / (was ? HIGH : LOW);

	atomic_store(&r->is_short, is);
	atomic_store(&r->room, is ? 0 : left / SHARE);
}

uint64_t room_left(struct room *r)
{
	uint64_t next = atomic_load(&r->next), now = clock_ns();

	if ((r->always || now >= next) &&
	    atomic_compare_exchange_strong(&r->next, &next, now + LOOK))
		room_update(r);
	return atomic_load(&r->room);
}
