/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of an image: compressed by all threads, taken out in order. */

/*
 * One thread, the caller, fills slots and takes them out again in the same order; other
 * threads compress the slots in between.  So everything that depends on order (positions,
 * tables, which of two equal files is the first) is done by one thread without a lock,
 * and does not depend on the number of threads.  The caller waits only when all slots are
 * in use: they are its memory.
 *
 * A small block that is stored uncompressed does not need a slot, but is copied into the
 * queue: there may be dozens of them between two blocks that take long, and those two are
 * to be compressed at the same time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "pack/squashfs/private.h"

/* Slots in addition to two for each thread: the caller fills up to two at a time. */
#define EXTRA 3
/* Copies in the queue may take this many blocks of memory for each slot. */
#define COPIES 4

struct image_blocks {
	image_done *done;
	void *ctx;
	const _Atomic int *stop;
	struct pool *pool;
	uint32_t block;
	unsigned n;
	struct image_slot *slots;
	struct image_slot *free;         /* free slots, linked by `next` */
	struct image_slot *first, *last; /* the queue, linked by `next` */
	uint64_t copies;                 /* bytes of copies in the queue */
	pthread_mutex_t lock; /* guards `ready` of slots, and what follows */
	pthread_cond_t changed;
	struct image_press **press; /* n_press idle compressors */
	unsigned n_press;
};

static void blocks_compress_slot(void *arg)
{
	struct image_slot *s = arg;
	struct image_blocks *b = s->of;
	struct image_press *p;

	pthread_mutex_lock(&b->lock);
	p = b->press[--b->n_press];
	pthread_mutex_unlock(&b->lock);
	if (b->stop && *b->stop)
		error_set(&s->err, -EINTR, "interrupted");
	else
		image_press(p, s->data, s->len, s->packed, &s->packed_len,
			    &s->err);
	lock_scope(&b->lock);
	b->press[b->n_press++] = p;
	s->ready = true;
	pthread_cond_signal(&b->changed);
}

static void blocks_release_slot(struct image_blocks *b, struct image_slot *s)
{
	if (s->packed) {
		s->next = b->free;
		b->free = s;
	} else {
		b->copies -= s->len;
		free(s);
	}
}

/* Take out the first slot of the queue.  If it is not ready, wait for it, or return 0 if
 * `wait` is false.  Return 1 if it was taken out, -errno if it or b->done failed. */
static int blocks_take_first(struct image_blocks *b, bool wait,
			     struct error *err)
{
	struct image_slot *s = b->first;
	bool ready;
	int r;

	pthread_mutex_lock(&b->lock);
	while (wait && !s->ready)
		pthread_cond_wait(&b->changed, &b->lock);
	ready = s->ready;
	pthread_mutex_unlock(&b->lock);
	if (!ready)
		return 0;
	b->first = s->next;
	if (s->err.code && err)
		*err = s->err;
	r = s->err.code ? s->err.code : b->done(b->ctx, s, err);
	blocks_release_slot(b, s);
	return r < 0 ? r : 1;
}

/* Take out all ready slots at the head of the queue; then wait until there is a free slot
 * or, if `copy` is not 0, room for a copy of that many bytes. */
static int blocks_make_room(struct image_blocks *b, size_t copy,
			    struct error *err)
{
	uint64_t most = (uint64_t)b->n * COPIES * b->block;
	int r = 1;

	while (b->first && r == 1)
		r = blocks_take_first(b, false, err);
	while (r >= 0 && b->first &&
	       (copy ? b->copies + copy > most : !b->free))
		r = blocks_take_first(b, true, err);
	return r < 0 ? r : 0;
}

static void blocks_enqueue(struct image_blocks *b, struct image_slot *s)
{
	s->next = NULL;
	if (b->first)
		b->last->next = s;
	else
		b->first = s;
	b->last = s;
}

static void slot_clear(struct image_slot *s)
{
	s->len = 0;
	s->packed_len = 0;
	s->fragment = s->node = IMAGE_NONE;
	s->last = s->ready = false;
	s->err.code = 0;
}

int image_blocks_get(struct image_blocks *b, struct image_slot **out,
		     struct error *err)
{
	int r = blocks_make_room(b, 0, err);

	if (r < 0)
		return r;
	*out = b->free;
	b->free = b->free->next;
	slot_clear(*out);
	return 0;
}

void image_blocks_put(struct image_blocks *b, struct image_slot *s)
{
	blocks_enqueue(b, s);
	if (s->len)
		pool_submit(b->pool, blocks_compress_slot, s);
	else
		s->ready = true;
}

int image_blocks_store(struct image_blocks *b, const void *data, uint32_t n,
		       uint32_t node, uint64_t size_at, struct error *err)
{
	struct image_slot *s;
	int r = blocks_make_room(b, n, err);

	if (r < 0)
		return r;
	s = calloc(1, sizeof *s + n);
	if (!s)
		return error_no_memory(err, "blocks that wait for compression");
	slot_clear(s);
	s->data = (unsigned char *)(s + 1);
	memcpy(s->data, data, n);
	s->len = n;
	s->node = node;
	s->size_at = size_at;
	s->last = s->ready = true;
	b->copies += n;
	blocks_enqueue(b, s);
	return 0;
}

int image_blocks_drain(struct image_blocks *b, struct error *err)
{
	int r = 1;

	while (b->first && r >= 0)
		r = blocks_take_first(b, true, err);
	return r < 0 ? r : 0;
}

const unsigned char *image_blocks_find(const struct image_blocks *b,
				       uint32_t fragment)
{
	for (const struct image_slot *s = b->first; s; s = s->next)
		if (s->fragment == fragment)
			return s->data;
	return NULL;
}

/* ---- making -------------------------------------------------------------------- */

/* Set the number of slots, and return the number of threads, that memory allows; at least
 * one thread. */
static unsigned blocks_fit(struct image_blocks *b, const struct image_codec *c,
			   unsigned threads, uint64_t memory)
{
	uint64_t slot = (2 + COPIES) * (uint64_t)b->block;
	uint64_t each = image_codec_memory(c) + 2 * slot;
	uint64_t rest = EXTRA * slot;
	uint64_t room = memory > rest ? (memory - rest) / each : 0;

	if (threads > room)
		threads = room ? (unsigned)room : 1;
	b->n = 2 * threads + EXTRA;
	if (memory > rest + threads * each) {
		/* If blocks are small, have more of them, so that no thread waits for
		 * another. */
		uint64_t more = (memory - rest - threads * each) / slot;
		uint64_t most = 2 * threads;

		b->n += (unsigned)(more < most ? more : most);
	}
	return threads;
}

static bool make_slots(struct image_blocks *b)
{
	b->slots = calloc(b->n, sizeof *b->slots);
	for (unsigned i = 0; b->slots && i < b->n; i++) {
		struct image_slot *s = &b->slots[i];

		s->of = b;
		s->data = malloc(b->block);
		s->packed = malloc(b->block);
		if (!s->data || !s->packed)
			return false;
		blocks_release_slot(b, s);
	}
	return b->slots != NULL;
}

static int make_threads(struct image_blocks *b, const struct image_codec *c,
			unsigned threads, struct error *err)
{
	int r = 0;

	b->press = calloc(threads, sizeof(struct image_press *));
	if (!b->press)
		return error_no_memory(err, "blocks that wait for compression");
	while (r == 0 && b->n_press < threads) {
		r = image_press_new(&b->press[b->n_press], c, b->block, err);
		b->n_press += r == 0;
	}
	return r < 0 ? r : pool_new(&b->pool, "squashfs", threads, b->n, err);
}

int image_blocks_new(struct image_blocks **out, const struct image_codec *c,
		     uint32_t block, unsigned threads, uint64_t memory,
		     image_done *done, void *ctx, const _Atomic int *stop,
		     struct error *err)
{
	struct image_blocks *b = calloc(1, sizeof *b);
	int r;

	*out = NULL;
	if (!b)
		return error_no_memory(err, "blocks that wait for compression");
	b->done = done;
	b->ctx = ctx;
	b->stop = stop;
	b->block = block;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	threads = blocks_fit(b, c, threads, memory);
	r = make_slots(b)
		    ? make_threads(b, c, threads, err)
		    : error_no_memory(err, "blocks that wait for compression");
	if (r < 0) {
		image_blocks_free(b);
		return r;
	}
	*out = b;
	return 0;
}

void image_blocks_free(struct image_blocks *b)
{
	if (!b)
		return;
	pool_free(b->pool);
	while (b->first) {
		struct image_slot *s = b->first;

		b->first = s->next;
		blocks_release_slot(b, s);
	}
	while (b->n_press)
		image_press_free(b->press[--b->n_press]);
	free(b->press);
	for (unsigned i = 0; b->slots && i < b->n; i++) {
		free(b->slots[i].data);
		free(b->slots[i].packed);
	}
	free(b->slots);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}
