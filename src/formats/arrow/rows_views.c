/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads Arrow views: short values are in the view, others in variadic buffers. */
/*
 * A view has 16 bytes: a length of 4 bytes, then the bytes themselves if they are no more
 * than 12; else the first four of them, the number of a variadic buffer, and the position
 * in it (Columnar.html, "Variable-size Binary View Layout").
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/arrow/rows.h"

#define VIEW 16
#define SHORT_MOST 12
/* A buffer is read from the first to the last byte that is needed, unless that is more
 * than SPARSE_LEAST bytes and more than SPARSE times the needed bytes; then each row is
 * read by itself. */
#define SPARSE 4
#define SPARSE_LEAST (UINT64_C(1) << 20)

struct buffer {
	uint64_t low, high, need, used;
	unsigned char *data;
	bool sparse;
};

static int view_damaged(struct arrow_reading *r)
{
	return error_set(r->err, -EBADMSG,
			 "a view refers to bytes outside of its batch");
}

/* Return the length of view `i` in bytes; 0 if it is null. */
static uint64_t view_length_of(const struct arrow_rows *x, uint64_t i)
{
	return arrow_rows_is_null(x, i) ? 0 : load_le32(x->data + VIEW * i);
}

static int note_view(struct arrow_reading *r, const struct arrow_rows *x,
		     uint64_t i, struct buffer *b, uint32_t n)
{
	const unsigned char *v = x->data + VIEW * i;
	uint64_t len = view_length_of(x, i), at = load_le32(v + 12);
	uint32_t which = load_le32(v + 8);

	if (len > INT32_MAX)
		return view_damaged(r);
	if (len <= SHORT_MOST)
		return 0;
	if (which >= n || at > INT32_MAX)
		return view_damaged(r);
	b += which;
	b->low = b->need ? min_u64(b->low, at) : at;
	b->high = max_u64(b->high, at + len);
	b->need += len;
	return 0;
}

/* Read bytes [from, from + n) of a buffer that is not compressed. */
static int read_plain(struct arrow_reading *r, uint64_t pos, uint64_t size,
		      uint64_t from, uint64_t n, unsigned char *to)
{
	if (from > size || n > size - from)
		return view_damaged(r);
	return arrays_read(&r->s->arrays, r->batch->body + pos + from, to, n,
			   r->err);
}

static int load_buffer(struct arrow_reading *r, const struct arrow_cell *c,
		       uint32_t which, struct buffer *b)
{
	const struct arrow_kept *k = r->batch;
	uint64_t n = b->high - b->low, pos, size, work;
	int e;

	if (!b->need)
		return 0;
	arrow_batch_buffer(&k->batch, c->at.buffers + 2 + which, c->at.views,
			   &pos, &size);
	if (k->batch.codec) {
		const struct arrow_buffer packed = {
			.s = &r->s->arrays,
			.codec = k->batch.codec,
			.pos = k->body + pos,
			.size = size,
			.least = b->high,
			.most = min_u64(max_u64(b->high, ARROW_VALUES_MOST),
					r->left),
		};

		e = arrow_buffer_part(&packed, b->low, n, &b->data, &work,
				      r->err);
		arrow_rows_charge(r, e == 0 ? n : 0, work);
		return e;
	}
	if (b->high > size)
		return view_damaged(r);
	b->sparse = n > SPARSE_LEAST && n / SPARSE > b->need;
	if (b->sparse)
		n = b->need;
	if (n > r->left)
		return error_set(r->err, -ENOTSUP,
				 "its rows take more than 4 GiB together: read "
				 "fewer rows at once");
	r->left -= n;
	b->data = malloc(n);
	if (!b->data)
		return error_no_memory(r->err, "the bytes of strings");
	return b->sparse ? 0 : read_plain(r, pos, size, b->low, n, b->data);
}

static int place_view(struct arrow_reading *r, struct arrow_rows *x, uint64_t i,
		      struct buffer *b)
{
	const unsigned char *v = x->data + VIEW * i;
	uint64_t at = load_le32(v + 12), pos, size;
	uint32_t which = load_le32(v + 8);
	unsigned char *to;

	x->len[i] = view_length_of(x, i);
	x->where[i] = v + 4;
	if (x->len[i] <= SHORT_MOST)
		return 0;
	b += which;
	if (!b->sparse) {
		x->where[i] = b->data + (at - b->low);
		return 0;
	}
	x->where[i] = to = b->data + b->used;
	b->used += x->len[i];
	arrow_batch_buffer(&r->batch->batch, x->cell->at.buffers + 2 + which,
			   x->cell->at.views, &pos, &size);
	return read_plain(r, pos, size, at, x->len[i], to);
}

static int views_load_buffers(struct arrow_reading *r, struct arrow_rows *x,
			      struct buffer *b, uint32_t n)
{
	int e = 0;

	for (uint64_t i = 0; e == 0 && i < x->n; i++)
		e = note_view(r, x, i, b, n);
	for (uint32_t i = 0; e == 0 && i < n; i++) {
		e = load_buffer(r, x->cell, i, &b[i]);
		x->more[i] = b[i].data;
	}
	for (uint64_t i = 0; e == 0 && i < x->n; i++)
		e = place_view(r, x, i, b);
	return e;
}

int arrow_views_load(struct arrow_reading *r, struct arrow_rows *x,
		     uint64_t first)
{
	uint64_t n = arrow_batch_more(&r->batch->batch, x->cell->at.views);
	uint64_t from, bytes;
	struct buffer *b;
	int e;

	if (mul_overflows(first, VIEW, &from) ||
	    mul_overflows(x->n, VIEW, &bytes) || bytes > r->left)
		return view_damaged(r);
	e = arrow_rows_fetch(r, x->cell, 1, from, bytes, &x->data);
	if (e < 0)
		return e;
	b = calloc(n + 1, sizeof *b);
	x->more = calloc(n + 1, sizeof *x->more);
	x->where = malloc((x->n + 1) * sizeof *x->where);
	x->len = malloc((x->n + 1) * sizeof *x->len);
	x->n_more = x->more ? (uint32_t)n : 0;
	e = b && x->more && x->where && x->len
		    ? views_load_buffers(r, x, b, (uint32_t)n)
		    : error_no_memory(r->err, "the table of strings");
	free(b);
	return e;
}

int arrow_view_length(struct arrow_reading *r, const struct arrow_cell *c,
		      uint64_t row, uint64_t *len)
{
	struct arrow_rows x = {.cell = c, .n = 1, .bit = row % 8};
	uint64_t rows, nulls, from;
	int e = 0;

	arrow_batch_node(&r->batch->batch, c->at.nodes, &rows, &nulls);
	if (row >= rows || mul_overflows(row, VIEW, &from))
		return view_damaged(r);
	if (nulls)
		e = arrow_rows_fetch(r, c, 0, row / 8, 1, &x.valid);
	if (e == 0)
		e = arrow_rows_fetch(r, c, 1, from, VIEW, &x.data);
	if (e == 0)
		*len = view_length_of(&x, 0);
	arrow_rows_free(&x);
	return e;
}
