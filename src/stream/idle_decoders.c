/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle decoders, which stopped in the middle of a stream and can continue there. */
/*
 * In the middle of an xz block or a zstd frame the decoder's state cannot be saved.
 * But the decoder itself can be kept, stopped where a window ends:
 *
 *	START  LATER  LATER  LATER  LATER  LATER
 *	|------|------|------|------|------|------
 *	              ^ idle               ^ idle
 *
 * A request takes the nearest decoder at or before its window and decodes what lies
 * between, or begins anew at the START if that is not much further.  A busy decoder
 * counts as idle at the window where it will stop: a thread that needs it waits.  Among
 * several waiting threads the one with the lowest window goes first, so readers and
 * prefetch threads that move forward together decode everything once.
 *
 * The windows between are decoded, too, and likely to be read: they are requested from
 * the cache one after the other (through the pinner), before the requested window.
 * Each is then one step of the decoder.  If they are in the cache already, or there is
 * no pinner, they are decoded and thrown away.
 *
 * Decoders are large (an xz dictionary, a zstd window): few are kept, and the one used
 * longest ago is closed first.  The bound of their memory is for all streams together,
 * because there can be a thousand streams (archives in archives): a stream that needs
 * one more decoder closes idle ones of any stream.  It never waits for busy decoders of
 * other streams, which may be waiting for it in turn (the compressed bytes of one
 * stream can be decoded bytes of another), but exceeds the bound.  Memory above
 * IDLE_DECODERS_MEMORY counts in the cache's budget.
 */
#include "stream/idle_decoders.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"

#define IDLE_DECODERS_MOST 8
#define PASS_BYTES ((size_t)256 << 10)

struct slot {
	bool used, busy;
	void *decoder;
	/* The window where it is, or will be when it is not busy any longer. */
	uint64_t at;
	uint64_t last; /* `clock` when it was last used */
	size_t memory;
};
struct waiter {
	uint64_t window;
	struct waiter *next;
};
struct lot {
	const struct idle_decoder_ops *ops;
	struct lot *next;
	pthread_cond_t change;
	struct slot slot[IDLE_DECODERS_MOST];
	struct waiter *waiting;
	bool known; /* `largest` was measured, and is not a guess */
	/* Bytes of the largest decoder so far; at first a guess. */
	size_t largest;
};

/* Shared by all streams.  The lock also protects the contents of their lots. */
static struct {
	pthread_mutex_t lock;
	struct lot *first;
	uint64_t clock;
	size_t memory; /* bound for idle decoders; one may always exist */
	/* Bytes of their memory that are counted in buf_extra_bytes. */
	size_t extra;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .memory = IDLE_DECODERS_MEMORY};

void stream_idle_decoders_limit(uint64_t bytes)
{
	lock_scope(&all.lock);
	all.memory = (size_t)max_u64(bytes, IDLE_DECODERS_MEMORY);
}

/* The lock must be held. */
static struct lot *idle_decoder_lot_new(const struct idle_decoder_ops *ops)
{
	struct lot *lot = calloc(1, sizeof *lot);

	if (!lot)
		return NULL;
	lot->ops = ops;
	pthread_cond_init(&lot->change, NULL);
	lot->largest = IDLE_DECODERS_MEMORY / 2;
	lot->next = all.first;
	all.first = lot;
	return lot;
}

/* Return the stream's lot, which is made at the first call, or NULL when memory is
 * out. */
static struct lot *idle_decoder_lot_of(struct stream *s,
				       const struct idle_decoder_ops *ops)
{
	lock_scope(&all.lock);
	if (!s->own)
		s->own = idle_decoder_lot_new(ops);
	return s->own;
}

/* ---- who goes on with what ----------------------------------------------- */

static bool idle_decoder_is_later(const struct stream *s, uint64_t i)
{
	return i < s->n && s->point[i].flags & POINT_LATER;
}

/* Return the decoder nearest to window `i` in [start, i], or NULL.  The lock must be
 * held. */
static struct slot *idle_decoder_nearest(struct lot *lot, uint64_t start,
					 uint64_t i)
{
	struct slot *best = NULL;

	for (unsigned k = 0; k < IDLE_DECODERS_MOST; k++) {
		struct slot *x = &lot->slot[k];

		if (x->used && x->at >= start && x->at <= i &&
		    (!best || x->at > best->at ||
		     (x->at == best->at && best->busy)))
			best = x;
	}
	return best;
}

/* Return a free slot for one more decoder, or NULL if there is no slot or no memory
 * for it.  The lock must be held. */
static struct slot *idle_decoder_vacancy(struct lot *lot)
{
	struct slot *empty = NULL;
	size_t memory = lot->largest;
	bool any = false;

	for (unsigned k = 0; k < IDLE_DECODERS_MOST; k++) {
		struct slot *x = &lot->slot[k];

		if (!x->used) {
			empty = x;
			continue;
		}
		any = true;
		memory += max_u64(x->memory, lot->largest);
	}
	return any && memory > all.memory ? NULL : empty;
}

/* Set *old to the idle decoder of `lot` that was used longest ago, if that was
 * before *old (which may be NULL). */
static void idle_decoder_older(struct lot *lot, struct slot **old)
{
	for (unsigned k = 0; k < IDLE_DECODERS_MOST; k++) {
		struct slot *x = &lot->slot[k];

		if (x->used && !x->busy && (!*old || x->last < (*old)->last))
			*old = x;
	}
}

static void idle_decoder_close_slot(struct lot *lot, struct slot *x)
{
	lot->ops->close(x->decoder);
	*x = (struct slot){0};
}

/* Close the idle decoder that was used longest ago.  Return false if all are busy.
 * The lock must be held. */
static bool idle_decoder_evict(struct lot *lot)
{
	struct slot *old = NULL;

	idle_decoder_older(lot, &old);
	if (old)
		idle_decoder_close_slot(lot, old);
	return old != NULL;
}

/* Close idle decoders of any stream until there is room for `more` bytes, but leave
 * `keep` of them.  The lock must be held. */
static void idle_decoder_make_room(size_t more, unsigned keep)
{
	size_t memory;

	for (;;) {
		struct lot *of = NULL;
		struct slot *old = NULL;
		unsigned resting = 0;

		memory = 0;
		for (struct lot *lot = all.first; lot; lot = lot->next) {
			struct slot *was = old;

			idle_decoder_older(lot, &old);
			of = old != was ? lot : of;
			for (unsigned k = 0; k < IDLE_DECODERS_MOST; k++) {
				memory += lot->slot[k].memory;
				resting +=
					lot->slot[k].used && !lot->slot[k].busy;
			}
		}
		if (resting <= keep || memory + more <= all.memory)
			break;
		idle_decoder_close_slot(of, old);
	}
	memory += more;
	memory -= min_u64(memory, IDLE_DECODERS_MEMORY);
	atomic_fetch_add(&buf_extra_bytes, memory - all.extra);
	all.extra = memory;
}

static void idle_decoder_lot_free(struct lot *lot)
{
	struct lot **p = &all.first;

	pthread_mutex_lock(&all.lock);
	while (*p != lot)
		p = &(*p)->next;
	*p = lot->next;
	idle_decoder_make_room(0, 1);
	pthread_mutex_unlock(&all.lock);
	for (unsigned i = 0; i < IDLE_DECODERS_MOST; i++)
		if (lot->slot[i].decoder)
			lot->ops->close(lot->slot[i].decoder);
	pthread_cond_destroy(&lot->change);
	free(lot);
}

void idle_decoders_free(struct stream *s)
{
	if (s->own)
		idle_decoder_lot_free(s->own);
	s->own = NULL;
}

/* Return whether a thread waits for the decoder at `at` with a window before `i`.
 * The lock must be held. */
static bool idle_decoder_is_overtaken(const struct lot *lot, uint64_t at,
				      uint64_t i)
{
	for (const struct waiter *w = lot->waiting; w; w = w->next)
		if (w->window >= at && w->window < i)
			return true;
	return false;
}

/* Try to find a decoder for window `i`.  Return NULL if the caller has to wait.  The
 * lock must be held. */
static struct slot *idle_decoder_choose(struct lot *lot, uint64_t start,
					uint64_t i)
{
	struct slot *best = idle_decoder_nearest(lot, start, i),
		    *empty = idle_decoder_vacancy(lot);

	/* Beginning anew costs little more, and leaves the other decoder where it
	 * is. */
	if (best && empty && i - best->at > (i - start) / 2)
		return empty;
	if (best)
		return best->busy || idle_decoder_is_overtaken(lot, best->at, i)
			       ? NULL
			       : best;
	while (!empty && idle_decoder_evict(lot))
		empty = idle_decoder_vacancy(lot);
	return empty;
}

/* Wait for a decoder for window `i`.  It is the caller's until
 * idle_decoder_return_slot.  *from is the window where it is; slot->decoder is NULL
 * if it has to be opened there. */
static struct slot *idle_decoder_take_slot(struct lot *lot, uint64_t start,
					   uint64_t i, uint64_t *from)
{
	struct waiter me = {i, NULL}, **p;
	struct slot *x;

	lock_scope(&all.lock);
	me.next = lot->waiting;
	lot->waiting = &me;
	while (!(x = idle_decoder_choose(lot, start, i)))
		pthread_cond_wait(&lot->change, &all.lock);
	for (p = &lot->waiting; *p != &me;)
		p = &(*p)->next;
	*p = me.next;
	*from = x->used ? x->at : start;
	if (!x->used) {
		idle_decoder_make_room(lot->largest, 0);
		x->memory = lot->largest;
	}
	x->used = x->busy = true;
	x->at = i + 1;
	pthread_cond_broadcast(&lot->change);
	return x;
}

/* Return a slot.  With `keep` its decoder stays idle where it is; else it is closed. */
static void idle_decoder_return_slot(struct lot *lot, struct slot *x, bool keep)
{
	void *decoder = x->decoder;
	size_t memory = decoder ? lot->ops->memory(decoder) : 0;

	{
		lock_scope(&all.lock);
		x->busy = false;
		x->last = ++all.clock;
		x->memory = memory;
		if (memory)
			lot->largest = lot->known
					       ? max_u64(lot->largest, memory)
					       : memory;
		lot->known |= memory > 0;
		if (keep)
			decoder = NULL;
		else
			*x = (struct slot){0};
		idle_decoder_make_room(0, 1);
		pthread_cond_broadcast(&lot->change);
	}
	if (decoder)
		lot->ops->close(decoder);
}

/* ---- windows ------------------------------------------------------------- */

static int idle_decoder_pass_over(struct lot *lot, struct stream *s,
				  void *decoder, uint64_t from, uint64_t to,
				  struct error *err)
{
	cleanup_free unsigned char *waste = NULL;
	int r = 0;

	if (from == to)
		return 0;
	waste = malloc(PASS_BYTES);
	if (!waste)
		return error_no_memory(err, "decoding up to a window");
	for (uint64_t i = from; i < to && r == 0; i++) {
		uint64_t left = s->point[i].size;

		while (left && r == 0) {
			size_t n = (size_t)min_u64(left, PASS_BYTES);

			r = lot->ops->read(decoder, s, i, waste, n, err);
			left -= n;
		}
	}
	return r;
}

static int idle_decoder_decode(struct lot *lot, struct stream *s,
			       uint64_t start, uint64_t i, unsigned char *out,
			       struct error *err)
{
	uint64_t from;
	struct slot *x = idle_decoder_take_slot(lot, start, i, &from);
	void *decoder = x->decoder;
	int r = 0;

	if (!decoder)
		r = lot->ops->open(&decoder, s, start, err);
	x->decoder = r == 0 ? decoder : NULL;
	if (r == 0)
		r = idle_decoder_pass_over(lot, s, decoder, from, i, err);
	if (r == 0)
		r = lot->ops->read(decoder, s, i, out, s->point[i].size, err);
	idle_decoder_return_slot(lot, x,
				 r == 0 && idle_decoder_is_later(s, i + 1));
	return r;
}

/* Decode a window that depends on no window before it and that none after it depends
 * on. */
static int idle_decoder_decode_alone(const struct idle_decoder_ops *ops,
				     struct stream *s, uint64_t i,
				     unsigned char *out, struct error *err)
{
	void *decoder;
	int r = ops->open(&decoder, s, i, err);

	if (r < 0)
		return r;
	r = ops->read(decoder, s, i, out, s->point[i].size, err);
	ops->close(decoder);
	return r;
}

/* Have the cache decode the windows between the decoder and `i` in order.  Errors
 * are ignored: they occur again, or the window is not needed. */
static void idle_decoder_lead_up(struct lot *lot, struct stream *s,
				 uint64_t start, uint64_t i)
{
	static _Thread_local bool leading;
	struct pinner *pinner = s->from.pinner;
	uint64_t from = start;
	struct slot *x;

	if (!pinner || leading)
		return;
	{
		lock_scope(&all.lock);
		x = idle_decoder_nearest(lot, start, i);
		if (x)
			from = x->at;
	}
	leading = true;
	for (; from < i; from++) {
		struct plan p;
		struct span span;

		plan_init(&p, 1);
		if (plan_chunk(&p, &s->set, from, 0, 1) == 1 &&
		    pinner->pin(pinner, &p.ext[0], &span, NULL) == 0)
			pinner->unpin(pinner, &span);
	}
	leading = false;
}

int idle_decoder_window(struct stream *s, const struct idle_decoder_ops *ops,
			uint64_t i, unsigned char *out, struct error *err)
{
	uint64_t start = i;
	struct lot *lot;

	if (!idle_decoder_is_later(s, i) && !idle_decoder_is_later(s, i + 1))
		return idle_decoder_decode_alone(ops, s, i, out, err);
	lot = idle_decoder_lot_of(s, ops);
	if (!lot)
		return error_no_memory(err, "decoding up to a window");
	while (start && idle_decoder_is_later(s, start))
		start--;
	idle_decoder_lead_up(lot, s, start, i);
	return idle_decoder_decode(lot, s, start, i, out, err);
}
