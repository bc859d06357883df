/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads rows of any Arrow type into memory, with the rows of the types in them. */
/*
 * A cell is loaded with the cells in it: for a list the items that its rows have, for a
 * dictionary the values from the least to the largest number.
 */
#include "formats/arrow/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"

static int rows_too_short(struct arrow_reading *r)
{
	return error_set(r->err, -EBADMSG,
			 "a batch has fewer bytes than its rows take");
}

#define PIECE_COST 512

static int rows_too_large(struct arrow_reading *r)
{
	return error_set(r->err, -ENOTSUP,
			 "its rows take more than 4 GiB together: read fewer "
			 "rows at once");
}

/* Allocate `n` elements of `size` bytes and set the pointer at `out` to them. */
static int rows_alloc(struct arrow_reading *r, uint64_t n, uint64_t size,
		      void *out)
{
	void *p = NULL;

	if (mul_overflows(n, size, &n) || n > r->left)
		return rows_too_large(r);
	r->left -= n;
	p = malloc(n ? n : 1);
	memcpy(out, &p, sizeof p);
	return p ? 0 : error_no_memory(r->err, "the values of rows");
}

/* The most bytes that buffer `i` of a cell may decode to; the first `end` of them are
 * needed. */
static uint64_t rows_buffer_most(const struct arrow_reading *r,
				 const struct arrow_cell *c, uint32_t i,
				 uint64_t end)
{
	uint64_t rows, nulls, most, width = c->size;

	if (i == 2 && (c->kind == CELL_BYTES || c->kind == CELL_TEXT))
		return max_u64(end, ARROW_VALUES_MOST);
	arrow_batch_node(&r->batch->batch, c->at.nodes, &rows, &nulls);
	if (!width)
		width = c->wide ? 8 : 4;
	if (c->view && c->kind != CELL_LIST)
		width = 16;
	if (i == 0 || c->kind == CELL_BOOL)
		return div_up(rows, 8) + ARROW_PADDING;
	if (add_overflows(rows, 1, &rows) ||
	    mul_overflows(rows, width, &most) || most > ARROW_VALUES_MOST)
		most = max_u64(end, ARROW_VALUES_MOST);
	return most + ARROW_PADDING;
}

void arrow_rows_charge(struct arrow_reading *r, uint64_t n, uint64_t work)
{
	r->left -= min_u64(r->left, n);
	r->left -= min_u64(r->left, work);
}

int arrow_rows_fetch(struct arrow_reading *r, const struct arrow_cell *c,
		     uint32_t i, uint64_t from, uint64_t n, unsigned char **out)
{
	const struct arrow_kept *k = r->batch;
	struct arrow_buffer b;
	uint64_t pos, size, end, work;
	int e;

	arrow_batch_buffer(&k->batch, c->at.buffers + i, c->at.views, &pos,
			   &size);
	if (add_overflows(from, n, &end))
		return rows_too_short(r);
	if (!k->batch.codec || !n) {
		if (end > size && n)
			return rows_too_short(r);
		e = rows_alloc(r, n, 1, out);
		return e < 0 || !n ? e
				   : arrays_read(&r->s->arrays,
						 k->body + pos + from, *out, n,
						 r->err);
	}
	b = (struct arrow_buffer){
		.s = &r->s->arrays,
		.codec = k->batch.codec,
		.pos = k->body + pos,
		.size = size,
		.least = end,
		.most = min_u64(rows_buffer_most(r, c, i, end), r->left),
	};
	e = arrow_buffer_part(&b, from, n, out, &work, r->err);
	arrow_rows_charge(r, e == 0 ? n : 0, work);
	return e;
}

/* ---- offsets, views --------------------------------------------------------- */

static uint64_t number_at(const unsigned char *p, uint64_t i, bool wide)
{
	return wide ? load_le64(p + 8 * i) : load_le32(p + 4 * i);
}

/* Turn the offsets of rows into x->begin, counted from the first row, and x->len.  Set
 * *base to the first offset, and *all to the sum of the lengths. */
static int load_offsets(struct arrow_reading *r, struct arrow_rows *x,
			uint64_t first, uint64_t *base, uint64_t *all)
{
	const struct arrow_cell *c = x->cell;
	unsigned width = c->wide ? 8 : 4;
	unsigned char *offsets = NULL;
	uint64_t from, n;
	int e = 0;

	if (mul_overflows(first, width, &from) ||
	    mul_overflows(x->n + 1, width, &n))
		return rows_too_short(r);
	e = arrow_rows_fetch(r, c, 1, from, n, &offsets);
	if (e == 0)
		e = rows_alloc(r, x->n, 8, &x->begin);
	if (e == 0)
		e = rows_alloc(r, x->n, 8, &x->len);
	*base = e == 0 ? number_at(offsets, 0, c->wide) : 0;
	*all = 0;
	for (uint64_t i = 0; e == 0 && i < x->n; i++) {
		uint64_t end = number_at(offsets, i + 1, c->wide);

		x->begin[i] = *all;
		if (end < *base + *all)
			e = error_set(r->err, -EBADMSG,
				      "the offsets of its rows do not ascend: "
				      "damaged?");
		else
			x->len[i] = end - *base - *all;
		*all += e == 0 ? x->len[i] : 0;
	}
	free(offsets);
	return e;
}

static int load_bytes(struct arrow_reading *r, struct arrow_rows *x,
		      uint64_t first)
{
	uint64_t base, all;
	int e = load_offsets(r, x, first, &base, &all);

	if (e == 0)
		e = arrow_rows_fetch(r, x->cell, 2, base, all, &x->data);
	if (e == 0)
		e = rows_alloc(r, x->n, sizeof *x->where, &x->where);
	for (uint64_t i = 0; e == 0 && i < x->n; i++)
		x->where[i] = x->data + x->begin[i];
	return e;
}

/* ---- lists, structures ------------------------------------------------------ */

static int load_child(struct arrow_reading *r, struct arrow_rows *x,
		      uint64_t first, uint64_t n)
{
	x->child = calloc(1, sizeof *x->child);
	if (!x->child)
		return error_no_memory(r->err, "the items of lists");
	x->n_child = 1;
	return arrow_rows_load(r, &x->cell->child[0], first, n, x->child);
}

/* Load a list view: each row has its own offset and length, in any order. */
static int load_list_view(struct arrow_reading *r, struct arrow_rows *x,
			  uint64_t first)
{
	const struct arrow_cell *c = x->cell;
	unsigned width = c->wide ? 8 : 4;
	unsigned char *offsets = NULL, *sizes = NULL;
	uint64_t low = UINT64_MAX, high = 0, from, n;
	int e;

	if (mul_overflows(first, width, &from) ||
	    mul_overflows(x->n, width, &n))
		return rows_too_short(r);
	e = arrow_rows_fetch(r, c, 1, from, n, &offsets);
	if (e == 0)
		e = arrow_rows_fetch(r, c, 2, from, n, &sizes);
	if (e == 0)
		e = rows_alloc(r, x->n, 8, &x->begin);
	if (e == 0)
		e = rows_alloc(r, x->n, 8, &x->len);
	for (uint64_t i = 0; e == 0 && i < x->n; i++) {
		uint64_t end;

		x->begin[i] = number_at(offsets, i, c->wide);
		x->len[i] = number_at(sizes, i, c->wide);
		if (!x->len[i] || arrow_rows_is_null(x, i))
			x->begin[i] = x->len[i] = 0;
		else if (add_overflows(x->begin[i], x->len[i], &end))
			e = rows_too_short(r);
		else
			low = min_u64(low, x->begin[i]),
			high = max_u64(high, end);
	}
	for (uint64_t i = 0; e == 0 && i < x->n; i++)
		x->begin[i] -= x->len[i] ? low : 0;
	if (e == 0 && high)
		e = load_child(r, x, low, high - low);
	free(offsets);
	free(sizes);
	return e;
}

static int load_list(struct arrow_reading *r, struct arrow_rows *x,
		     uint64_t first)
{
	uint64_t base, all;
	int e;

	if (x->cell->view)
		return load_list_view(r, x, first);
	e = load_offsets(r, x, first, &base, &all);
	return e < 0 ? e : load_child(r, x, base, all);
}

static int load_fixed_list(struct arrow_reading *r, struct arrow_rows *x,
			   uint64_t first)
{
	uint64_t from, n;

	if (mul_overflows(first, x->cell->per, &from) ||
	    mul_overflows(x->n, x->cell->per, &n))
		return rows_too_short(r);
	return load_child(r, x, from, n);
}

static int load_members(struct arrow_reading *r, struct arrow_rows *x,
			uint64_t first)
{
	int e = 0;

	x->child = calloc(x->cell->n ? x->cell->n : 1, sizeof *x->child);
	if (!x->child)
		return error_no_memory(r->err, "the members of structures");
	x->n_child = x->cell->n;
	for (uint32_t i = 0; e == 0 && i < x->n_child; i++)
		e = arrow_rows_load(r, &x->cell->child[i], first, x->n,
				    &x->child[i]);
	return e;
}

/* ---- dictionaries ------------------------------------------------------------ */

static int load_piece(struct arrow_reading *r, struct arrow_rows *x,
		      const struct arrow_addition *a, uint64_t low,
		      uint64_t high)
{
	const struct arrow_kept *batch = r->batch;
	uint64_t first = max_u64(low, a->first);
	uint64_t end = min_u64(high, a->first + a->kept->batch.rows);
	struct arrow_rows *piece = &x->child[x->n_child];
	int e;

	if (first >= end)
		return 0;
	x->n_child++;
	r->batch = a->kept;
	e = arrow_rows_load(r, x->cell->values, first - a->first, end - first,
			    piece);
	piece->start = first;
	r->batch = batch;
	return e;
}

/* Load the values [low, high) of the dictionary as it was for this batch. */
static int load_values(struct arrow_reading *r, struct arrow_rows *x,
		       uint64_t low, uint64_t high)
{
	const struct arrow_addition *at;
	uint64_t n = 0;
	size_t count = arrow_dictionary_at(r->s, x->cell->id, r->time, &at);
	int e = 0;

	if (count)
		n = at[count - 1].first + at[count - 1].kept->batch.rows;
	if (high > n)
		return error_set(r->err, -EBADMSG,
				 "a row refers to value %" PRIu64
				 " of a dictionary of %" PRIu64 " values",
				 high - 1, n);
	for (; count && at->first + at->kept->batch.rows <= low; at++)
		count--;
	while (count && at[count - 1].first >= high)
		count--;
	/* Each piece costs memory beyond its bytes: its structures, and what malloc
	 * adds. */
	if (count > r->left / PIECE_COST)
		return rows_too_large(r);
	r->left -= count * PIECE_COST;
	x->child = calloc(count, sizeof *x->child);
	if (!x->child)
		return error_no_memory(r->err, "the values of a dictionary");
	for (size_t i = 0; e == 0 && i < count; i++)
		e = load_piece(r, x, &at[i], low, high);
	return e;
}

static int load_dictionary(struct arrow_reading *r, struct arrow_rows *x,
			   uint64_t first)
{
	const struct arrow_cell *c = x->cell;
	uint64_t from, n, low = UINT64_MAX, high = 0;
	int e;

	if (mul_overflows(first, c->size, &from) ||
	    mul_overflows(x->n, c->size, &n))
		return rows_too_short(r);
	e = arrow_rows_fetch(r, c, 1, from, n, &x->data);
	if (e == 0)
		e = rows_alloc(r, x->n, 8, &x->begin);
	for (uint64_t i = 0; e == 0 && i < x->n; i++) {
		uint64_t v = load_le(x->data + i * c->size, c->size);

		x->begin[i] = v;
		if (arrow_rows_is_null(x, i))
			continue;
		if (v >> (8 * c->size - 1) & (c->is_signed || c->size == 8))
			return error_set(r->err, -EBADMSG,
					 "a row refers to a negative number of "
					 "its dictionary");
		low = min_u64(low, v);
		high = max_u64(high, v + 1);
	}
	return e < 0 || !high ? e : load_values(r, x, low, high);
}

/* ---- all of them -------------------------------------------------------------- */

static int load_fixed(struct arrow_reading *r, struct arrow_rows *x,
		      uint64_t first)
{
	uint64_t from, n;

	if (x->cell->kind == CELL_BOOL)
		return arrow_rows_fetch(r, x->cell, 1, first / 8,
					div_up(x->bit + x->n, 8), &x->data);
	if (mul_overflows(first, x->cell->size, &from) ||
	    mul_overflows(x->n, x->cell->size, &n))
		return rows_too_short(r);
	return arrow_rows_fetch(r, x->cell, 1, from, n, &x->data);
}

/* Check that the batch has these rows; load the validity bits if any of its rows is
 * null. */
static int load_validity(struct arrow_reading *r, struct arrow_rows *x,
			 uint64_t first)
{
	uint64_t rows, nulls, end;

	arrow_batch_node(&r->batch->batch, x->cell->at.nodes, &rows, &nulls);
	if (add_overflows(first, x->n, &end) || end > rows || nulls > rows)
		return error_set(r->err, -EBADMSG,
				 "a batch has %" PRIu64
				 " values where there should be more",
				 rows);
	x->bit = first % 8;
	if (!nulls || x->cell->kind == CELL_NULL)
		return 0;
	return arrow_rows_fetch(r, x->cell, 0, first / 8,
				div_up(x->bit + x->n, 8), &x->valid);
}

int arrow_rows_load(struct arrow_reading *r, const struct arrow_cell *c,
		    uint64_t first, uint64_t n, struct arrow_rows *out)
{
	int e;

	out->cell = c;
	out->n = n;
	if (!n)
		return 0;
	e = load_validity(r, out, first);
	if (e < 0)
		return e;
	switch (c->kind) {
	case CELL_NULL:
		return 0;
	case CELL_BYTES:
	case CELL_TEXT:
		return c->view ? arrow_views_load(r, out, first)
			       : load_bytes(r, out, first);
	case CELL_LIST:
		return load_list(r, out, first);
	case CELL_FIXED_LIST:
		return load_fixed_list(r, out, first);
	case CELL_STRUCT:
		return load_members(r, out, first);
	case CELL_DICTIONARY:
		return load_dictionary(r, out, first);
	default:
		return load_fixed(r, out, first);
	}
}

void arrow_rows_free(struct arrow_rows *r)
{
	for (uint32_t i = 0; i < r->n_child; i++)
		arrow_rows_free(&r->child[i]);
	for (uint32_t i = 0; i < r->n_more; i++)
		free(r->more[i]);
	free(r->child);
	free(r->more);
	free(r->where);
	free(r->begin);
	free(r->len);
	free(r->data);
	free(r->valid);
	memset(r, 0, sizeof *r);
}
