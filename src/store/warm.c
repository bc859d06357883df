/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring source files into the page cache that are read here and there. */
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
 * The first epoch over an archive of small files asks for all of it, in an order
 * that no disk likes: tens of thousands of reads of some KiB each, where the same
 * bytes come ten times as fast one after the other.  So while such reads go on, a
 * thread reads the file from its beginning in large pieces, and the readers find
 * more and more of it there.
 *
 * It is a guess that more will be wanted, so it is bounded by what was: for each
 * byte asked for, AHEAD more are read.  Who looks at three files and leaves has
 * cost three times that; an epoch has the whole file there when it is an eighth
 * done.  Files that would take more than a share of the memory are left alone: the
 * beginning would be gone before the end is read.  Large reads are left to the
 * kernel, which reads ahead by itself.
 */
#define AHEAD 8
#define SMALL (UINT64_C(256) << 10)
#define PIECE (UINT64_C(1) << 20)
/* Files that are looked at, by number; others with the same slot are not. */
#define SLOTS 256
#define NOBODY UINT32_MAX

struct slot {
	struct warm *w;
	_Atomic uint32_t file;
	_Atomic uint64_t asked, done; /* done: UINT64_MAX when it is finished */
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

/* The next piece; UINT64_MAX: there is none, or no use. */
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
	/* Asked for without copying; waited for by its last byte. */
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
		/* What was asked for in between found it queued. */
	} while (warm_wants_more(s) && !atomic_load(&s->w->stop) &&
		 !atomic_exchange(&s->queued, true));
}

void warm_note(struct warm *w, uint32_t file, uint64_t len)
{
	struct slot *s = &w->slot[file % SLOTS];
	uint32_t nobody = NOBODY;

	if (len > SMALL)
		return;
	if (atomic_load_explicit(&s->file, memory_order_relaxed) != file &&
	    !atomic_compare_exchange_strong(&s->file, &nobody, file))
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
		atomic_init(&w->slot[i].file, NOBODY);
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
