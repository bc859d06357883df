/* SPDX-License-Identifier: BSD-2-Clause */
/* Read a box of a tensor into memory, through the map and pins that a mount uses. */
/*
 * A box is read like a window of a file that holds just its elements: parts are opened,
 * the window is mapped to extents, and these are pinned and copied (fs/gather.c).
 *
 * If the destination has gaps between rows, bytes are first gathered in pieces that stay
 * in the second-level cache, and copied from there row by row.  A row consists of as many
 * of the innermost axes as have no gaps.  Long rows and boxes without gaps are gathered
 * in place.
 */
#include "tensors/boxes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "fs/gather.h"

/* Bytes gathered before they are copied to their rows. */
#define PIECE ((size_t)256 << 10)

static uint32_t elem_of(const struct tensor *t)
{
	return t->dtype.size;
}

/* Map at most `want` bytes of the box from byte `off` on.  The plan is never empty on
 * success. */
static int box_map(const struct tensor *t, const struct box *b, uint64_t off,
		   uint64_t want, struct plan *plan, struct error *err)
{
	int r;

	plan_init(plan, want);
	plan->takes_strips = true;
	r = tensor_map_box(t, b, off, plan, err);
	if (r < 0)
		return r;
	if (plan->n == 0 || plan->have == 0 || plan->have > want)
		return error_set(err, -EIO,
				 "%s: nothing is known to be at byte %llu: a "
				 "defect",
				 t->name, (unsigned long long)off);
	return 0;
}

/* Read bytes [off, off + len) of the box, after tensor_prepare_box. */
static int read_window(struct store *s, struct tensor *t, const struct box *b,
		       uint64_t off, void *to, size_t len, struct error *err)
{
	struct gather g;
	struct plan plan;
	struct ahead ahead;
	uint64_t have = 0;
	int r = 0, end;

	gather_init(&g, s, gather_pin_budget(s), to, len);
	while (r == 0 && have < len) {
		r = box_map(t, b, off + have, len - have, &plan, err);
		for (unsigned i = 0; r == 0 && i < plan.n; i++) {
			want_ahead(s, &plan, i, &ahead);
			r = gather_extent(&g, &plan.ext[i], err);
		}
		have += plan.have;
	}
	end = gather_finish(&g, r ? NULL : err);
	return r < 0 ? r : end;
}

/* Check that the box is within the tensor, and set *bytes to its size.  Return 0 or
 * -EINVAL. */
static int box_measure(const struct tensor *t, const struct box *b,
		       uint64_t *bytes, struct error *err)
{
	*bytes = elem_of(t);
	for (unsigned i = 0; i < t->rank; i++)
		if (b->start[i] > t->shape[i] ||
		    b->count[i] > t->shape[i] - b->start[i] ||
		    mul_overflows(*bytes, b->count[i], bytes))
			return error_set(err, -EINVAL,
					 "%s: a box beyond axis %u: a defect",
					 t->name, i);
	return 0;
}

int box_read(struct store *s, struct tensor *t, const struct box *b, void *out,
	     size_t size, struct error *err)
{
	uint64_t bytes;
	int r = box_measure(t, b, &bytes, err);

	if (r == 0 && bytes != size)
		r = error_set(err, -EINVAL,
			      "%s: a box of %llu bytes for %zu: a defect",
			      t->name, (unsigned long long)bytes, size);
	if (r < 0 || !size)
		return r;
	r = tensor_prepare_box(t, b, 0, size, err);
	return r < 0 ? r : read_window(s, t, b, 0, out, size, err);
}

/* ---- to a place with gaps ------------------------------------------------ */

/* Iterates over the rows of a box. */
struct rows {
	unsigned axes;   /* number of outer axes, over which it iterates */
	uint64_t bytes;  /* bytes of a row */
	uint64_t within; /* bytes of the current row that were copied */
	uint64_t at[RANK_MAX];
	unsigned char *to; /* where the current row goes */
};

static void box_rows_init(struct rows *r, unsigned rank, const struct box *b,
			  uint32_t elem, const uint64_t *pitch, void *out)
{
	memset(r, 0, sizeof *r);
	r->to = out;
	r->axes = rank;
	r->bytes = elem;
	/* An axis is part of the row if there are no gaps along it. */
	while (r->axes &&
	       (b->count[r->axes - 1] == 1 || pitch[r->axes - 1] == r->bytes))
		r->bytes *= b->count[--r->axes];
}

static void rows_next(struct rows *r, const struct box *b,
		      const uint64_t *pitch)
{
	r->within = 0;
	for (unsigned i = r->axes; i-- > 0;) {
		r->to += pitch[i];
		if (++r->at[i] < b->count[i])
			return;
		r->to -= pitch[i] * b->count[i];
		r->at[i] = 0;
	}
}

/* Copy the next `n` bytes of the box to their rows. */
static void rows_put(struct rows *r, const struct box *b, const uint64_t *pitch,
		     const unsigned char *from, size_t n)
{
	while (n) {
		size_t part = min_u64(n, r->bytes - r->within);

		memcpy(r->to + r->within, from, part);
		r->within += part;
		from += part;
		n -= part;
		if (r->within == r->bytes)
			rows_next(r, b, pitch);
	}
}

/* Read long rows directly into place. */
static int read_rows(struct store *s, struct tensor *t, const struct box *b,
		     uint64_t bytes, struct rows *rows, const uint64_t *pitch,
		     struct error *err)
{
	int r = 0;

	for (uint64_t off = 0; off < bytes && r == 0; off += rows->bytes) {
		r = read_window(s, t, b, off, rows->to, (size_t)rows->bytes,
				err);
		rows_next(rows, b, pitch);
	}
	return r;
}

int box_read_into(struct store *s, struct tensor *t, const struct box *b,
		  void *out, const uint64_t *pitch, struct error *err)
{
	cleanup_free unsigned char *piece = NULL;
	struct rows rows;
	uint64_t bytes;
	int r = box_measure(t, b, &bytes, err);

	if (r < 0 || !bytes)
		return r;
	r = tensor_prepare_box(t, b, 0, bytes, err);
	if (r < 0)
		return r;
	box_rows_init(&rows, t->rank, b, elem_of(t), pitch, out);
	if (rows.bytes >= PIECE)
		return read_rows(s, t, b, bytes, &rows, pitch, err);
	piece = malloc(min_u64(bytes, PIECE));
	if (!piece)
		return error_no_memory(err, "a piece of a box");
	for (uint64_t off = 0; off < bytes && r == 0; off += PIECE) {
		size_t n = min_u64(PIECE, bytes - off);

		r = read_window(s, t, b, off, piece, n, err);
		if (r == 0)
			rows_put(&rows, b, pitch, piece, n);
	}
	return r;
}

/* ---- chunks that were never written ---------------------------------------------- */

static bool box_fill_is_zero(const struct fill *f)
{
	const unsigned char *at = f->pattern;

	for (uint32_t i = 0; i < f->width; i++)
		if (at[i])
			return false;
	return true;
}

static bool fill_equal(const struct fill *a, const struct fill *b)
{
	if (a->width == b->width && !memcmp(a->pattern, b->pattern, a->width))
		return true;
	return box_fill_is_zero(a) && box_fill_is_zero(b);
}

/* Pin extents in order as long as they are fill.  Set *is to false, and leave *hold
 * pinned, at the first one that is not. */
static int pin_until_data(struct store *s, const struct plan *plan,
			  const struct fill *fill, bool *is, struct span *hold,
			  struct error *err)
{
	for (unsigned i = 0; i < plan->n && *is; i++) {
		int r = store_pin(s, &plan->ext[i], hold, err);

		if (r < 0)
			return r;
		hold->given = 0; /* compared, which is not reading */
		*is = hold->kind == SPAN_FILL &&
		      (!fill || fill_equal(&hold->fill, fill));
		if (*is)
			store_unpin(s, hold);
	}
	return 0;
}

int box_is_fill(struct store *s, struct tensor *t, const struct box *b,
		const struct fill *fill, bool *is, struct span *hold,
		struct error *err)
{
	struct plan plan;
	uint64_t bytes;
	int r = box_measure(t, b, &bytes, err);

	memset(hold, 0, sizeof *hold);
	*is = true;
	if (r == 0 && bytes)
		r = tensor_prepare_box(t, b, 0, bytes, err);
	for (uint64_t off = 0; off < bytes && r == 0 && *is; off += plan.have) {
		r = box_map(t, b, off, bytes - off, &plan, err);
		if (r == 0)
			r = pin_until_data(s, &plan, fill, is, hold, err);
	}
	if (r < 0)
		memset(hold, 0, sizeof *hold);
	return r;
}
