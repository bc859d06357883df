/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring source files that are read in a random order into the page cache. */
#include "store/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/number.h"
#include "base/pool.h"

/*
 * The first epoch over an archive of small files asks for all of it, in an order that is
 * slow on any disk: tens of thousands of reads of some KiB each, where the same bytes
 * come ten times as fast one after the other.  So while such reads go on, a thread reads
 * the file from its beginning in large pieces, and the readers find more and more of it
 * in the page cache.
 *
 * That more will be needed is a guess, so it is bounded by what was read: for each byte
 * asked for, AHEAD bytes are read.  A reader of three files has cost AHEAD times their
 * size; an epoch has the whole file in the page cache when an eighth of it is done.
 * Files that would take more than a share of the memory are left alone: their beginning
 * would be gone before their end is read.  Large reads are left to the kernel, which
 * reads ahead by itself.
 */
#define AHEAD 8
#define SMALL (UINT64_C(256) << 10)
#define PIECE (UINT64_C(1) << 20)
/* Slots for files, by number; of files with the same slot only the first is read
 * ahead. */
#define SLOTS 256
#define NO_FILE UINT32_MAX

struct slot {
	struct warm *w;
	_Atomic uint32_t file;
	_Atomic uint64_t asked,
		done; /* bytes; done: UINT64_MAX when the file is finished */
	_Atomic bool queued;
};
struct warm {
	struct handles *handles;
	struct pool *pool;
	uint64_t most;
	_Atomic bool stop;
	struct slot slot[SLOTS];
};

static bool warm_wants_more(struct slot *s)
{
	uint64_t asked = atomic_load(&s->asked), done = atomic_load(&s->done);

	return done != UINT64_MAX && done / AHEAD + PIECE / AHEAD <= asked;
}

/* Read the piece at `at`.  Return the position behind it, or UINT64_MAX if there is no
 * more to read or it is of no use. */
static uint64_t warm_read_piece(struct warm *w, uint32_t file, uint64_t at)
{
	struct handle pin;
	uint64_t n;
	char last;

	if (handles_get(w->handles, file, &pin, NULL) < 0)
		return UINT64_MAX;
	n = at < pin.size ? min_u64(PIECE, pin.size - at) : 0;
	if (pin.size > w->most)
		n = 0;
	/* The piece is asked for without copying it; reading its last byte waits for
	 * it. */
	if (n && (posix_fadvise(pin.fd, (off_t)(pin.base + at), (off_t)n,
				POSIX_FADV_WILLNEED) != 0 ||
		  pread(pin.fd, &last, 1, (off_t)(pin.base + at + n - 1)) != 1))
		n = 0;
	handles_put(w->handles, &pin);
	counter_add(COUNT_BYTES_WARMED, n);
	return n ? at + n : UINT64_MAX;
}

static void warm_run(void *arg)
{
	struct slot *s = arg;
	uint32_t file = atomic_load(&s->file);

	do {
		while (warm_wants_more(s) && !atomic_load(&s->w->stop))
			atomic_store(&s->done,
				     warm_read_piece(s->w, file,
						     atomic_load(&s->done)));
		atomic_store(&s->queued, false);
		/* warm_note calls since the loop ended found the slot queued, so look
		 * again. */
	} while (warm_wants_more(s) && !atomic_load(&s->w->stop) &&
		 !atomic_exchange(&s->queued, true));
}

void warm_note(struct warm *w, uint32_t file, uint64_t len)
{
	struct slot *s = &w->slot[file % SLOTS];
	uint32_t none = NO_FILE;

	if (len > SMALL)
		return;
	if (atomic_load_explicit(&s->file, memory_order_relaxed) != file &&
	    !atomic_compare_exchange_strong(&s->file, &none, file))
		return;
	if (atomic_load_explicit(&s->done, memory_order_relaxed) == UINT64_MAX)
		return;
	atomic_fetch_add(&s->asked, len);
	if (warm_wants_more(s) && !atomic_exchange(&s->queued, true) &&
	    !pool_try_submit(w->pool, warm_run, s))
		atomic_store(&s->queued, false);
}

int warm_new(struct warm **out, struct handles *h, uint64_t most,
	     struct error *err)
{
	struct warm *w = calloc(1, sizeof *w);
	int r;

	*out = NULL;
	if (!w)
		return error_no_memory(err, "reading source files ahead");
	w->handles = h;
	w->most = most;
	for (unsigned i = 0; i < SLOTS; i++) {
		w->slot[i].w = w;
		atomic_init(&w->slot[i].file, NO_FILE);
	}
	r = pool_new(&w->pool, "warm", 1, SLOTS, err);
	if (r < 0)
		free(w);
	else
		*out = w;
	return r;
}

void warm_free(struct warm *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, true);
	pool_free(w->pool);
	free(w);
}
