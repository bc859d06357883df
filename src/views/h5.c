/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h5: the whole tensor as one contiguous dataset of an HDF5 file. */

/*
 * The source makes the file without its data: a few KiB of metadata, attributes and
 * flags, at whose end the data begin (monolith.h).  That is a document, which the cache
 * keeps; the data behind it are mapped as in array.bin.  The offset of the data is
 * learnt when the size is first asked for, and never changes: a document that was
 * dropped and made again is compared with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/limits.h>

#include "base/number.h"
#include "views/monolith.h"
#include "views/name.h"
#include "views/state.h"
#include "views/table.h"

static bool h5_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return view_is_numeric(t) && t->ops && t->ops->monolith;
}

/* ---- the document -------------------------------------------------------- */

/* Check that the message has the data of one dataset, in full, or none if the tensor is
 * empty, and that they begin where they did before. */
static int h5_check(const struct tensor *t, const struct monolith *m,
		    struct error *err)
{
	uint64_t known = atomic_load(&t->views->h5_front);

	if (m->tail.nparts != (t->bytes > 0) ||
	    (t->bytes && monolith_part_at(m, 0).bytes != t->bytes))
		return error_set(err, -EIO,
				 "%s: the file made for array.h5 does not "
				 "match the dataset",
				 t->name);
	if (known && known != m->tail.front)
		return error_set(err, -ESTALE,
				 "%s: array.h5 changed because its source "
				 "changed: mount again",
				 t->name);
	return 0;
}

static char *h5_document(const struct view *v, const uint64_t *at, size_t *len,
			 struct error *err)
{
	struct tensor *t = v->tensor;
	struct monolith m;
	char *made;

	(void)at;
	made = t->ops->monolith(t, len, err);
	if (made && !monolith_read(made, *len, &m, err) &&
	    !h5_check(t, &m, err))
		return made;
	free(made);
	return NULL;
}

static bool h5_is_document(const struct view *v, const uint64_t *at)
{
	(void)v, (void)at;
	return false; /* only its beginning is a document */
}

static int h5_pin_document(const struct view *v, const uint64_t *at,
			   struct pinner *p, struct span *span,
			   struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};

	e.u.chunk.set = &v->tensor->views->documents;
	e.u.chunk.index = tensor_document_chunk(v, at);
	e.u.chunk.slice = EXTENT_WHOLE;
	return p->pin(p, &e, span, err);
}

/* ---- sizes and extents --------------------------------------------------- */

static int h5_size(const struct view *v, const uint64_t *at, struct pinner *p,
		   uint64_t *size, struct error *err)
{
	struct tensor *t = v->tensor;
	uint64_t front = atomic_load(&t->views->h5_front);
	struct monolith m;
	struct span span;
	int r;

	if (!front) {
		r = h5_pin_document(v, at, p, &span, err);
		if (r < 0)
			return r;
		r = monolith_read(span.buf->data, span.buf->size - 1, &m, err);
		if (!r)
			atomic_store(&t->views->h5_front, front = m.tail.front);
		p->unpin(p, &span);
		if (r < 0)
			return r;
	}
	*size = front + t->bytes;
	return 0;
}

/* Set *front to the bytes before the data.  They are known because the size of a file
 * is always asked for first. */
static int h5_front(const struct tensor *t, uint64_t *front, struct error *err)
{
	*front = atomic_load(&t->views->h5_front);
	return *front ? 0
		      : error_set(err, -EIO, "%s: array.h5 was not prepared",
				  t->name);
}

static int h5_prepare(const struct view *v, const uint64_t *at, uint64_t off,
		      uint64_t len, struct error *err)
{
	struct tensor *t = v->tensor;
	uint64_t front;
	struct box b;
	int r = h5_front(t, &front, err);

	if (r < 0 || off + len <= front)
		return r;
	if (off < front) {
		len -= front - off;
		off = front;
	}
	view_whole_box(v, at, &b);
	return tensor_prepare_box(t, &b, off - front, len, err);
}

static int h5_map(const struct view *v, const uint64_t *at, uint64_t off,
		  struct plan *plan, struct error *err)
{
	struct tensor *t = v->tensor;
	uint64_t front;
	struct box b;
	int r = h5_front(t, &front, err);

	if (r < 0)
		return r;
	if (off < front)
		off += plan_chunk(plan, &t->views->documents,
				  tensor_document_chunk(v, at), off,
				  front - off);
	if (off < front || !plan_open(plan))
		return 0;
	view_whole_box(v, at, &b);
	return tensor_map_box(t, &b, off - front, plan, err);
}

static ssize_t h5_left_out(const struct view *v, const uint64_t *at,
			   struct pinner *p, char *buf, size_t n)
{
	struct error err = {0};
	struct monolith m;
	struct span span;
	ssize_t len;
	int r = h5_pin_document(v, at, p, &span, &err);

	if (r < 0)
		return r;
	r = monolith_read(span.buf->data, span.buf->size - 1, &m, &err);
	len = r < 0 ? r : (ssize_t)min_u64(m.tail.notes, XATTR_SIZE_MAX);
	if (len > 0 && n && (size_t)len > n)
		len = -ERANGE;
	if (len > 0 && n)
		memcpy(buf, m.notes, (size_t)len);
	p->unpin(p, &span);
	return len;
}

const struct view_ops view_h5 = {
	.name = "h5",
	.summary = "array.h5, one contiguous dataset; merged.h5 of all",
	.top = "array.h5",
	.unlisted = true,
	.fits = h5_fits,
	.box_of = view_whole_box,
	.document = h5_document,
	.is_document = h5_is_document,
	.size = h5_size,
	.prepare = h5_prepare,
	.map = h5_map,
	.left_out = h5_left_out,
};
