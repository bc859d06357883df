/* SPDX-License-Identifier: BSD-2-Clause */
/* merged.h5: everything in a mounted HDF5 file, as one plain HDF5 file. */

/*
 *	front (a document, kept by the cache) | data of a tensor | zeros | data of ...
 *
 * The first request for the size makes a table of where data begin, 16 bytes for each
 * tensor.  Offsets and sizes never change afterwards.
 */
#include "formats/hdf5/merged.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/limits.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/export/export.h"
#include "formats/hdf5/worker/call.h"
#include "views/monolith.h"

struct place {
	uint64_t at; /* offset of its data in the file, in bytes */
	struct tensor *tensor;
};
struct places {
	uint64_t front, size;
	size_t n;
	struct place place[];
};
struct hdf5_merged {
	struct chunk_set set; /* one chunk: the message of monolith.h */
	struct hdf5_source *s;
	_Atomic(struct places *) places; /* NULL until the size is asked for */
};

static struct hdf5_merged *merged_of(const struct chunk_set *s)
{
	return (struct hdf5_merged *)(uintptr_t)s;
}

/* ---- places -------------------------------------------------------------- */

static int merged_fail_mismatch(const struct hdf5_merged *m, struct error *err)
{
	return error_set(err, -EIO,
			 "%s: the HDF5 file made of it does not match the "
			 "mounted datasets",
			 m->s->path);
}

/* Make the table of places from the parts of a message. */
static int merged_places_new(const struct hdf5_merged *m,
			     const struct monolith *is, struct places **out,
			     struct error *err)
{
	struct places *p;
	size_t n = 0;

	if (is->tail.nparts > m->s->items.n)
		return merged_fail_mismatch(m, err);
	p = malloc(sizeof *p + is->tail.nparts * sizeof *p->place);
	if (!p)
		return error_no_memory(err,
				       "the table of datasets in merged.h5");
	for (size_t i = 0; i < m->s->items.n; i++) {
		struct hdf5_tensor *h = m->s->items.at[i].tensor;
		struct monolith_part part;

		if (!h || !hdf5_has_data(h) || h->t.unreadable)
			continue;
		if (n < is->tail.nparts)
			part = monolith_part_at(is, n);
		if (n >= is->tail.nparts || part.bytes != h->t.bytes) {
			free(p);
			return merged_fail_mismatch(m, err);
		}
		p->place[n++] = (struct place){part.at, &h->t};
	}
	if (n != is->tail.nparts) {
		free(p);
		return merged_fail_mismatch(m, err);
	}
	p->front = is->tail.front;
	p->size = is->tail.size;
	p->n = n;
	*out = p;
	return 0;
}

/* Check that a front that was made again has the same sizes as before. */
static int merged_check_same(struct hdf5_merged *m, const struct monolith *is,
			     struct error *err)
{
	const struct places *known = atomic_load(&m->places);

	if (!known ||
	    (known->front == is->tail.front && known->size == is->tail.size))
		return 0;
	return error_set(err, -ESTALE,
			 "%s: " HDF5_MERGED_NAME
			 " changed because its source changed: mount again",
			 m->s->path);
}

/* ---- the document -------------------------------------------------------- */

static uint64_t merged_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s, (void)index;
	return UINT64_MAX;
}

static int merged_locate(const struct chunk_set *s, uint64_t index,
			 const struct buf *segment, struct chunk *c,
			 struct error *err)
{
	(void)s, (void)index, (void)segment, (void)err;
	memset(c, 0, sizeof *c);
	c->state = CHUNK_FETCH;
	c->size = MONOLITH_PAGE;
	return 0;
}

static int merged_fetch(struct chunk_set *s, uint64_t index,
			_Atomic uint64_t *gauge, struct buf **out,
			struct error *err)
{
	struct hdf5_merged *m = merged_of(s);
	struct error why = {0};
	struct monolith is;
	struct buf *b;
	size_t len;
	cleanup_free char *made = hdf5_monolith_new(m->s, NULL, &len, &why);

	(void)index;
	if (!made || monolith_read(made, len, &is, &why) < 0 ||
	    merged_check_same(m, &is, &why) < 0)
		return error_set(err, why.code ? why.code : -EIO, "%s",
				 why.text);
	b = buf_new(len, gauge);
	if (!b)
		return error_no_memory(err, "the front of merged.h5");
	memcpy(b->data, made, len);
	*out = b;
	return 0;
}

static void merged_describe(const struct chunk_set *s, uint64_t index,
			    char *buf, size_t n)
{
	(void)index;
	snprintf(buf, n, "%s " HDF5_MERGED_NAME, merged_of(s)->s->path);
}

static const struct chunk_set_ops merged_ops = {
	.index_page_of = merged_segment_of,
	.locate = merged_locate,
	.fetch = merged_fetch,
	.describe = merged_describe,
};

static int merged_pin_front(struct hdf5_merged *m, struct pinner *p,
			    struct span *span, struct monolith *is,
			    struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	int r;

	e.u.chunk.set = &m->set;
	e.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &e, span, err);
	if (r < 0)
		return r;
	r = monolith_read(span->buf->data, span->buf->size, is, err);
	if (r < 0)
		p->unpin(p, span);
	return r;
}

/* ---- the file ------------------------------------------------------------ */

struct hdf5_merged *hdf5_merged_new(struct hdf5_source *s)
{
	struct hdf5_merged *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->set.ops = &merged_ops;
	m->set.id = chunk_set_new_id();
	m->set.unit = MONOLITH_PAGE;
	m->s = s;
	return m;
}

void hdf5_merged_free(struct hdf5_merged *m)
{
	if (m)
		free(atomic_load(&m->places));
	free(m);
}

static int merged_learn_places(struct hdf5_merged *m, struct pinner *p,
			       struct error *err)
{
	struct places *fresh, *before = NULL;
	struct monolith is;
	struct span span;
	int r = merged_pin_front(m, p, &span, &is, err);

	if (r < 0)
		return r;
	r = merged_places_new(m, &is, &fresh, err);
	p->unpin(p, &span);
	if (r == 0 &&
	    !atomic_compare_exchange_strong(&m->places, &before, fresh))
		free(fresh);
	return r;
}

int hdf5_merged_attr(struct hdf5_merged *m, struct pinner *p, struct attr *out,
		     struct error *err)
{
	int r = atomic_load(&m->places) ? 0 : merged_learn_places(m, p, err);

	if (r < 0)
		return r;
	*out = (struct attr){.size = atomic_load(&m->places)->size,
			     .mtime = m->s->mtime,
			     .mode = S_IFREG | 0444,
			     .nlink = 1};
	return 0;
}

/* Return the last place that begins at or before `off`; off >= front and x->n > 0. */
static size_t merged_place_at(const struct places *x, uint64_t off)
{
	struct bisect b = bisect_in(1, x->n);

	while (bisect_next(&b))
		bisect_answer(&b, x->place[b.mid].at > off);
	return (size_t)b.lo - 1;
}

static void merged_whole_box(const struct tensor *t, struct box *b)
{
	for (unsigned i = 0; i < t->rank; i++) {
		b->start[i] = 0;
		b->count[i] = t->shape[i];
	}
}

/* Return the places. They are known, because the size is asked for before data. */
static const struct places *merged_places(const struct hdf5_merged *m,
					  struct error *err)
{
	const struct places *x = atomic_load(&m->places);

	if (!x)
		error_set(err, -EIO,
			  "%s: merged.h5 was read before its size was known",
			  m->s->path);
	return x;
}

int hdf5_merged_prepare(struct hdf5_merged *m, uint64_t off, uint64_t len,
			struct error *err)
{
	const struct places *x = merged_places(m, err);
	uint64_t end = off + len;
	int r = 0;

	if (!x)
		return err->code;
	off = max_u64(off, x->front);
	for (size_t i = off < end && x->n ? merged_place_at(x, off) : x->n;
	     i < x->n && !r && x->place[i].at < end; i++) {
		struct tensor *t = x->place[i].tensor;
		uint64_t at = x->place[i].at, from = max_u64(off, at) - at;
		uint64_t to = min_u64(end - at, t->bytes);
		struct box b;

		merged_whole_box(t, &b);
		if (from < to)
			r = tensor_prepare_box(t, &b, from, to - from, err);
	}
	return r;
}

/* Map zeros up to the next page, where the next data begin. */
static uint64_t merged_map_gap(const struct places *x, size_t i, uint64_t off,
			       struct plan *plan)
{
	static const unsigned char zero;
	const struct fill zeros = {&zero, 1};
	uint64_t end = i + 1 < x->n ? x->place[i + 1].at : x->size;

	return plan_fill(plan, zeros, 0, end - off);
}

/* Map the data of tensor i that are in the window, up to their end. */
static int merged_map_data(const struct places *x, size_t i, uint64_t off,
			   struct plan *plan, struct error *err)
{
	struct tensor *t = x->place[i].tensor;
	uint64_t from = off - x->place[i].at, want = plan->want;
	struct box b;
	int r;

	merged_whole_box(t, &b);
	plan->want = min_u64(want, plan->have + (t->bytes - from));
	r = tensor_map_box(t, &b, from, plan, err);
	plan->want = want;
	return r;
}

int hdf5_merged_map(const struct hdf5_merged *m, uint64_t off,
		    struct plan *plan, struct error *err)
{
	const struct places *x = merged_places(m, err);
	uint64_t begin = off - plan->have;
	int r = 0;

	if (!x)
		return err->code;
	if (off < x->front)
		plan_chunk(plan, (struct chunk_set *)(uintptr_t)&m->set, 0, off,
			   x->front - off);
	while (!r && plan_open(plan) && x->n) {
		uint64_t have = plan->have;
		size_t i;

		off = begin + have;
		if (off < x->front || off >= x->size)
			break;
		i = merged_place_at(x, off);
		if (off - x->place[i].at < x->place[i].tensor->bytes)
			r = merged_map_data(x, i, off, plan, err);
		else
			merged_map_gap(x, i, off, plan);
		if (plan->have == have)
			break;
	}
	return r;
}

ssize_t hdf5_merged_left_out(struct hdf5_merged *m, struct pinner *p, char *buf,
			     size_t n)
{
	struct error err = {0};
	struct monolith is;
	struct span span;
	ssize_t len;
	int r = merged_pin_front(m, p, &span, &is, &err);

	if (r < 0)
		return r;
	len = (ssize_t)min_u64(is.tail.notes, XATTR_SIZE_MAX);
	if (n && (size_t)len > n)
		len = -ERANGE;
	else if (n)
		memcpy(buf, is.notes, (size_t)len);
	p->unpin(p, &span);
	return len;
}
