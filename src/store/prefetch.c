/* SPDX-License-Identifier: BSD-2-Clause */
/* Detect readers that go forward, and decode ahead of them. */
/*
 * A stream is a reader that wants chunk after chunk in the order that the set's `next`
 * gives: C order, which is also the order of first touch, whatever the chunk shape.  A
 * few streams a bucket are remembered, so that several readers in different places do not
 * disturb each other:
 *
 *	       last             frontier
 *	    ----|====== window =====|---------->  chunks in reading order
 *	     wanted    on their way   not asked for
 *
 * The window is half of the steps that the reader has made, until it is full: at most a
 * third of all decoding is in vain when the reader stops.  A jump starts a new stream,
 * which has no effect until it has gone forward twice.  Random reading therefore
 * prefetches nothing.
 *
 * Readers stop where axes end: after a frame, after a row of frames.  So a stream is not
 * expected to go from one line of chunks to the next, from one plane to the next, or to
 * another part, before it has done so once (`carry`, see `next` in chunk.h).  A reader of
 * all of an array waits once an axis for that, and a reader of one row has only that row
 * decoded.
 *
 * Chunks that a read under way needs for certain are another matter: prefetch_want takes
 * them whatever streams there are, so that all threads work on one reader's frame.  If
 * the frame is one very large chunk, its decoder cuts it into parts for a team of as many
 * threads (codec/parts.h).
 */
#include "store/prefetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "base/team.h"

#define BUCKETS 16
#define STREAMS 8 /* in each bucket */
#define QUEUE 512
#define STREAM_WANT 64 /* chunks that one prefetch_note may ask for */
/* In chunks.  A reader of rows returns to the first chunk of a row of chunks, and READs
 * that the kernel sends in parallel arrive out of turn.  A READ up to this far behind a
 * stream's last chunk belongs to the stream. */
#define STREAM_BACK 64

struct stream {
	uint64_t set;      /* id of the set; 0: the slot is free */
	uint64_t first;    /* chunk it began with */
	uint64_t last;     /* chunk wanted last */
	uint64_t frontier; /* last chunk asked for ahead; == last: none */
	uint64_t ahead;    /* chunks from last to frontier */
	uint64_t window;   /* chunks ahead that are wanted */
	uint64_t steps;    /* steps forward, in a row */
	unsigned carry;    /* the most axes that one of its steps went across */
	uint64_t tick;
};
struct bucket {
	pthread_mutex_t lock; /* protects streams and tick */
	struct stream stream[STREAMS];
	uint64_t tick;
	/* The last chunk noted, read without the lock: a key, and whether the reader goes
	 * forward. */
	_Atomic uint64_t recent;
};
struct prefetch {
	struct pool *pool;
	bool in_team;
	uint64_t window, most; /* in bytes */
	unsigned threads;
	prefetch_load_fn *load;
	prefetch_has_fn *has;
	void *ctx;
	_Atomic uint64_t wanted; /* bytes of jobs that prefetch_want queued */
	struct bucket bucket[BUCKETS];
};
struct job {
	struct prefetch *p;
	struct chunk_set *set;
	uint64_t index;
	uint64_t wanted; /* bytes counted in prefetch.wanted */
	bool sure;       /* a READ under way needs it */
};

static struct bucket *prefetch_bucket_of(struct prefetch *p,
					 const struct chunk_set *set)
{
	return &p->bucket[set->id % BUCKETS];
}

/* Return true if the reader has passed the chunk first: it may be gone from the cache
 * again. */
static bool prefetch_job_is_late(const struct job *j)
{
	struct bucket *b = prefetch_bucket_of(j->p, j->set);

	lock_scope(&b->lock);
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct stream *s = &b->stream[i];

		if (s->set == j->set->id && s->first <= j->index &&
		    j->index <= s->last)
			return true;
	}
	return false;
}

static void prefetch_job_run(void *arg)
{
	struct job *j = arg;

	if (j->sure || !prefetch_job_is_late(j))
		j->p->load(j->p->ctx, j->set, j->index);
	atomic_fetch_sub(&j->p->wanted, j->wanted);
	free(j);
}

/* Queue one chunk.  Return false if the queue is full or memory is out. */
static bool prefetch_job_submit(struct prefetch *p, struct chunk_set *set,
				uint64_t index, uint64_t wanted, bool sure)
{
	struct job *j = malloc(sizeof *j);

	if (!j)
		return false;
	*j = (struct job){p, set, index, wanted, sure};
	if (pool_try_submit(p->pool, prefetch_job_run, j))
		return true;
	free(j);
	return false;
}

bool prefetch_want(struct prefetch *p, struct chunk_set *set, uint64_t index,
		   uint64_t bytes, bool sure)
{
	bytes = max_u64(bytes, 1);
	if (bytes <= p->most &&
	    atomic_fetch_add(&p->wanted, bytes) <= p->most - bytes &&
	    prefetch_job_submit(p, set, index, bytes, sure))
		return true;
	if (bytes <= p->most)
		atomic_fetch_sub(&p->wanted, bytes);
	return false;
}

/* Return the stream that `index` continues, within its window or as its next chunk, or
 * NULL. */
static struct stream *
prefetch_stream_find(struct bucket *b, struct chunk_set *set, uint64_t index)
{
	unsigned carry;
	uint64_t next;

	for (unsigned i = 0; i < STREAMS; i++) {
		struct stream *s = &b->stream[i];

		if (s->set != set->id || index < s->last)
			continue;
		if (index <= s->frontier)
			return s;
		if (set->ops->next(set, s->last, &next, &carry) &&
		    next == index)
			return s;
	}
	return NULL;
}

/* Return true if a stream that goes forward has just passed chunk `index`. */
static bool prefetch_stream_passed(const struct bucket *b, uint64_t id,
				   uint64_t index)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct stream *s = &b->stream[i];

		if (s->set == id && s->steps >= 2 && s->first <= index &&
		    index < s->last && s->last - index <= STREAM_BACK)
			return true;
	}
	return false;
}

static void prefetch_stream_start(struct bucket *b, struct chunk_set *set,
				  uint64_t index)
{
	struct stream *s = &b->stream[0];

	for (unsigned i = 1; i < STREAMS; i++)
		if (b->stream[i].tick < s->tick)
			s = &b->stream[i];
	*s = (struct stream){.set = set->id,
			     .first = index,
			     .last = index,
			     .frontier = index,
			     .tick = ++b->tick};
}

/* Return the number of chunks from the stream's last one to `to` in reading order, at
 * most `most`.  Notes which axes are crossed on the way. */
static uint64_t prefetch_stream_steps(struct stream *s, struct chunk_set *set,
				      uint64_t to, uint64_t most)
{
	uint64_t from = s->last, n = 0;
	unsigned carry = 0;

	while (from != to && n < most &&
	       set->ops->next(set, from, &from, &carry)) {
		s->carry = carry > s->carry ? carry : s->carry;
		n++;
	}
	return from == to ? n : most;
}

static uint64_t window_chunks(const struct prefetch *p,
			      const struct chunk_set *set)
{
	uint64_t unit = max_u64(set->unit, 1);

	if (!p->window)
		return 0;
	return max_u64(p->window / unit, min_u64(p->threads, p->most / unit));
}

/* Move the stream to `index`; put up to n chunks to ask for into `want` and return their
 * number. */
static unsigned prefetch_stream_advance(struct prefetch *p, struct stream *s,
					struct chunk_set *set, uint64_t index,
					uint64_t *want, unsigned n)
{
	uint64_t most = window_chunks(p, set), next;
	uint64_t gone = prefetch_stream_steps(s, set, index, s->ahead + 1);
	unsigned k = 0, carry;

	s->ahead = s->ahead > gone ? s->ahead - gone : 0;
	if (index > s->frontier)
		s->frontier = index;
	s->last = index;
	s->steps++;
	if (s->steps < 2 || most == 0)
		return 0;
	s->window = min_u64(max_u64(s->steps / 2, 2), most);
	/* Refill in batches, not for every chunk. */
	if (s->ahead * 2 > s->window)
		return 0;
	while (k < n && s->ahead < s->window &&
	       set->ops->next(set, s->frontier, &next, &carry) &&
	       carry <= s->carry) {
		want[k++] = next;
		s->frontier = next;
		s->ahead++;
	}
	return k;
}

/* Return true if the reader goes forward. want[0..*n-1] are the chunks to decode ahead of
 * it.  The caller holds the bucket's lock. */
static bool note_reader(struct prefetch *p, struct bucket *b,
			struct chunk_set *set, uint64_t index, uint64_t *want,
			unsigned *n)
{
	struct stream *s = prefetch_stream_find(b, set, index);

	if (!s && prefetch_stream_passed(b, set->id, index))
		return true;
	if (!s) {
		prefetch_stream_start(b, set, index);
		return false;
	}
	s->tick = ++b->tick;
	if (index != s->last)
		*n = prefetch_stream_advance(p, s, set, index, want,
					     STREAM_WANT);
	return s->steps >= 2;
}

bool prefetch_note(struct prefetch *p, struct chunk_set *set, uint64_t index)
{
	struct bucket *b = prefetch_bucket_of(p, set);
	uint64_t key = (set->id << 48 ^ (index + 1)) << 1, seen;
	uint64_t want[STREAM_WANT];
	bool forward;
	unsigned n = 0;

	if (!set->ops->next)
		return false;
	seen = atomic_load_explicit(&b->recent, memory_order_relaxed);
	if ((seen & ~UINT64_C(1)) == key)
		return seen & 1;
	/* All readers of a set share this lock, and none waits for it.  A stream that
	 * misses a READ goes on with the next one within its window.  A chunk that this
	 * READ completes is kept as long as behind readers that do not go forward. */
	if (pthread_mutex_trylock(&b->lock))
		return false;
	forward = note_reader(p, b, set, index, want, &n);
	pthread_mutex_unlock(&b->lock);
	atomic_store_explicit(&b->recent, key | forward, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++)
		if (!p->has(p->ctx, set, want[i]) &&
		    !prefetch_job_submit(p, set, want[i], 0, false))
			break;
	return forward;
}

int prefetch_new(struct prefetch **out, unsigned threads, uint64_t window,
		 uint64_t most, prefetch_load_fn *load, prefetch_has_fn *has,
		 void *ctx, struct error *err)
{
	struct prefetch *p = calloc(1, sizeof *p);
	int r;

	*out = NULL;
	if (!p)
		return error_no_memory(err, "decoding ahead of readers");
	p->window = window;
	p->most = most;
	p->threads = threads;
	p->load = load;
	p->has = has;
	p->ctx = ctx;
	for (unsigned i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&p->bucket[i].lock, NULL);
	r = pool_new(&p->pool, "prefetch", threads, QUEUE, err);
	/* One team thread for each core in addition to the reader's. */
	if (r == 0)
		r = team_start(threads - 1, err);
	p->in_team = r == 0;
	if (r < 0) {
		prefetch_free(p);
		return r;
	}
	*out = p;
	return 0;
}

void prefetch_free(struct prefetch *p)
{
	if (!p)
		return;
	pool_free(p->pool);
	if (p->in_team)
		team_stop();
	for (unsigned i = 0; i < BUCKETS; i++)
		pthread_mutex_destroy(&p->bucket[i].lock);
	free(p);
}
