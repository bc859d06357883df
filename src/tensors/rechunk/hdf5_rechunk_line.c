/* SPDX-License-Identifier: BSD-2-Clause */
/* New chunks that wait for their place in the file. */
/*
 * Threads finish chunks in any order, but places are given in one: that of tiles, and in a
 * tile that of numbers.  So the same work gives the same bytes.  A chunk that is encoded
 * before its turn waits in the memory that it had when it was not; whoever encodes the one
 * that all wait for gives places to all that can have one now, and writes them.  Others do
 * the same for those behind meanwhile: only giving places needs the lock.
 *
 * Nobody waits: the first chunk of the line belongs to the oldest tile, whose jobs are
 * under way, with all memory that they need.
 */
#include "tensors/rechunk/hdf5_rechunk_run.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

void rechunk_line_up(struct making *t)
{
	struct run *r = t->run;

	atomic_fetch_add(&t->refs, 1);
	lock_scope(&r->lock);
	if (r->first)
		r->last->next = t;
	else
		r->first = t;
	r->last = t;
}

static void release(struct run *r, struct piece *p)
{
	bool had = p->buf;

	buf_unref(p->buf);
	p->buf = NULL;
	if (had) {
		lock_scope(&r->lock);
		r->in_flight -= r->cost;
		pthread_cond_broadcast(&r->freed);
	}
}

/* With the lock: those whose turn it is, by `next`, each with a reference to its tile. */
static int give_places(struct run *r, struct piece **list, struct error *err)
{
	struct piece **end = list;
	struct making *t;
	int code = 0;

	*list = NULL;
	while ((t = r->first)) {
		struct piece *p = &t->pieces[t->placed];

		if (!p->ready)
			break;
		if (p->buf)
			code = build_place(r->w->build, p->is.chunk.len,
					   &p->is.chunk.pos, err);
		if (code < 0)
			break;
		if (p->buf) {
			atomic_fetch_add(&t->refs, 1);
			*end = p;
			end = &p->next;
			*end = NULL;
		}
		if (++t->placed == t->n_pieces) {
			r->first = t->next;
			rechunk_tile_put(t);
		}
	}
	return code;
}

static int write_piece(struct run *r, struct piece *p, struct error *err)
{
	int code = rechunk_write(r->w, p->buf->data, &p->is, err);

	if (code < 0)
		return code;
	lock_scope(&r->lock);
	r->w->chunk_bytes += p->is.chunk.len;
	return vec_push(&r->w->chunks, p->is.chunk)
		       ? 0
		       : error_set(err, -ENOMEM, "out of memory");
}

static void write_all(struct run *r, struct piece *list)
{
	while (list) {
		struct piece *p = list;
		struct error err = {0};

		list = p->next;
		if (!rechunk_is_over(r)) {
			int code = write_piece(r, p, &err);

			if (code < 0)
				rechunk_fail(r, code, &err, false);
		}
		release(r, p);
		rechunk_tile_put(p->tile);
	}
}

void rechunk_complete(struct piece *p)
{
	struct run *r = p->tile->run;
	struct error err = {0};
	struct piece *list;
	int code = 0;

	if (rechunk_is_over(r) ||
	    (!atomic_load(&p->stored) && r->w->fill.width))
		release(r, p); /* nobody wants it */
	else
		code = rechunk_encode(r->w, &p->buf, &p->is, &err);
	if (code < 0) {
		rechunk_fail(r, code, &err, false);
		release(r, p);
	}
	pthread_mutex_lock(&r->lock);
	p->ready = true;
	code = give_places(r, &list, &err);
	pthread_mutex_unlock(&r->lock);
	if (code < 0)
		rechunk_fail(r, code, &err, false);
	write_all(r, list);
}

void rechunk_line_free(struct run *r)
{
	while (r->first) {
		struct making *t = r->first;

		r->first = t->next;
		for (uint64_t k = t->placed; k < t->n_pieces; k++)
			buf_unref(t->pieces[k].buf);
		rechunk_tile_put(t);
	}
}
