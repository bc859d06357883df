/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory may be filled ahead of readers, looked at now and then. */
/*
 * Pages that are read ahead are page cache like any other: clean, and the first to go.
 * But others go to make room for them, and where a control group is full these are the
 * reader's own memory.  So reading ahead ends well before that: below an eighth of the
 * memory, or when tasks of the group stand still for want of it (PSI).  It goes on once
 * there is a sixth, so that it does not flicker.
 */
#include "readahead/room.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/system.h"

#define SHARE 4 /* of what is available */
#define LOW 8   /* of all memory: less is short ... */
#define HIGH 6  /* ... until there is so much */
/* Nanoseconds between looks, and percent of time that tasks may stand still. */
#define LOOK UINT64_C(200000000)
#define STALLED 20

struct room {
	room_memory_fn *memory;
	void *ctx;
	_Atomic uint64_t next; /* look, when the clock says so */
	_Atomic uint64_t room;
	bool always; /* for tests: a memory function is asked each time */
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
