/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrow columns shown by their cells: dictionaries, views, nested types. */
/*
 * Numbers and texts of a dictionary, and views, are shown as if they were plain columns.
 * Rows that are not arrays, or have nulls that their kind cannot show, are a line of JSON
 * each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrow/rows.h"

/* Most bytes that are loaded for one request. */
#define LOADED_MOST (UINT64_C(4) << 30)
/* Most bytes handed on for a request of several rows: rows may repeat a value that the
 * dictionary holds once. */
#define HANDED_MOST (UINT64_C(1) << 30)
/* About how many bytes a chunk of numbers of a dictionary has. */
#define CHUNK (UINT64_C(1) << 20)

static int cells_load(const struct array *a, uint32_t part,
		      const struct arrow_cell *cell, uint64_t first, uint64_t n,
		      struct arrow_rows *out, struct error *err)
{
	const struct arrow_own *own = a->own;
	const struct arrow_kept *k = own->parts.at[part].batch;
	struct arrow_reading r = {(const struct arrow *)a->source, k, k->time,
				  LOADED_MOST, err};

	memset(out, 0, sizeof *out);
	return arrow_rows_load(&r, cell, first, n, out);
}

static int value_is_missing(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "a row refers to a value of its dictionary that is "
			 "missing (null)");
}

/* ---- numbers ---------------------------------------------------------------- */

int arrow_cells_layout(const struct arrow *s, const struct arrow_column *c,
		       const struct arrow_part *p, struct array_layout *out,
		       struct error *err)
{
	uint64_t bytes;

	out->kind = ARRAY_MADE;
	out->maker = c->cell.kind == CELL_DICTIONARY
			     ? "tensorfs: from a dictionary"
			     : "tensorfs: from cells";
	out->file = s->arrays.file;
	out->stored = c->dtype;
	out->shape[0] = out->chunk[0] = p->piece.rows;
	if (mul_overflows(p->piece.rows, c->dtype.size, &bytes) ||
	    (p->codec && bytes > LOADED_MOST))
		return error_set(
			err, -ENOTSUP,
			"a batch has more than 4 GiB that are compressed in "
			"one piece: write it with smaller batches");
	if (!p->codec)
		out->chunk[0] =
			min_u64(p->piece.rows,
				max_u64(CHUNK / max_u64(c->dtype.size, 1), 1));
	return 0;
}

static int arrow_cells_learn(struct array *a, uint32_t part,
			     struct array_layout *out, struct error *err)
{
	const struct arrow_own *own = a->own;

	return arrow_cells_layout((const struct arrow *)a->source, own->column,
				  &own->parts.at[part], out, err);
}

static int arrow_cells_make(struct array *a, uint32_t part,
			    const struct grid *g, uint64_t chunk, void *out,
			    size_t size, struct error *err)
{
	const struct arrow_own *own = a->own;
	const struct arrow_column *c = own->column;
	uint64_t first = chunk * g->chunk[0];
	uint64_t n =
		min_u64(g->chunk[0], own->parts.at[part].piece.rows - first);
	unsigned char *to = out;
	struct arrow_rows x;
	int e = cells_load(a, part, &c->cell, first, n, &x, err);

	memset(out, 0, size);
	for (uint64_t i = 0; e == 0 && i < n; i++, to += c->dtype.size) {
		uint64_t at = i, len;
		const struct arrow_rows *v = arrow_rows_value(&x, &at);
		const unsigned char *p = arrow_rows_bytes(v, at, &len);

		if (!p)
			e = value_is_missing(err);
		else if (v->cell->kind == CELL_BOOL)
			*to = v->data[(at + v->bit) / 8] >> (at + v->bit) % 8 &
			      1;
		else
			memcpy(to, p, c->dtype.size);
	}
	arrow_rows_free(&x);
	return e;
}

const struct array_ops arrow_cells_number_ops = {
	.learn = arrow_cells_learn,
	.make = arrow_cells_make,
	.attributes = arrow_own_attributes,
	.free = arrow_own_done,
};

/* ---- values of their own length ---------------------------------------------- */

struct handing {
	const struct arrow_column *column;
	struct arrow_rows rows;
	/* If rows are files: the member with their bytes; else NULL. */
	const struct arrow_rows *file;
	struct jsonline line;
	uint64_t left;
	void (*put)(void *ctx, const char *s, size_t len);
	void *ctx;
	struct error *err;
};

static int hand_bytes(struct handing *h, uint64_t i, const char **s,
		      uint64_t *len)
{
	const unsigned char *p = NULL;

	*len = 0;
	if (!h->file)
		p = arrow_rows_bytes(&h->rows, i, len);
	else if (!arrow_rows_is_null(&h->rows, i))
		p = arrow_rows_bytes(h->file, i, len);
	*s = p ? (const char *)p : "";
	return p || h->column->dtype.kind == DTYPE_BLOB
		       ? 0
		       : value_is_missing(h->err);
}

static int hand_json(struct handing *h, uint64_t i, const char **s,
		     uint64_t *len)
{
	int e;

	h->line.n = 0;
	arrow_rows_put(&h->rows, i, &h->line);
	e = jsonline_check(&h->line, h->err);
	*s = h->line.at;
	*len = h->line.n;
	return e;
}

static int cells_hand_row(struct handing *h, uint64_t i, uint64_t n)
{
	bool json = h->column->dtype.kind == DTYPE_TEXT;
	const char *s = "";
	uint64_t len = 0;
	int e = (json ? hand_json : hand_bytes)(h, i, &s, &len);

	if (e < 0)
		return e;
	if (n > 1 && len > h->left)
		return error_set(h->err, -ENOTSUP,
				 "%llu rows are more than 1 GiB together: read "
				 "fewer rows at once",
				 (unsigned long long)n);
	h->left -= min_u64(len, h->left);
	h->put(h->ctx, s, len);
	return 0;
}

static int
arrow_cells_hand_values(struct array *a, uint32_t part, const struct box *b,
			void (*put)(void *ctx, const char *s, size_t len),
			void *ctx, struct error *err)
{
	const struct arrow_own *own = a->own;
	struct handing h = {.column = own->column,
			    .left = HANDED_MOST,
			    .put = put,
			    .ctx = ctx,
			    .err = err};
	const struct arrow_cell *cell = &h.column->cell;
	const struct arrow_cell *file = arrow_cell_file(cell);
	uint64_t n = b->count[0];
	int e = cells_load(a, part, cell, b->start[0], n, &h.rows, err);

	if (e == 0 && n && file && h.column->dtype.kind == DTYPE_BLOB)
		h.file = &h.rows.child[file - cell->child];
	for (uint64_t i = 0; e == 0 && i < n; i++)
		e = cells_hand_row(&h, i, n);
	arrow_rows_free(&h.rows);
	jsonline_free(&h.line);
	return e;
}

/* The length of a file that is a view can be read without its bytes.  Returns 1 if *bytes
 * is set, 0 if the length is not known without reading the value, -errno on errors. */
static int arrow_cells_length(struct array *a, uint32_t part,
			      const struct box *b, uint64_t *bytes,
			      struct error *err)
{
	const struct arrow_own *own = a->own;
	const struct arrow_cell *c = &own->column->cell;
	const struct arrow_part *p = &own->parts.at[part];
	struct arrow_reading r = {(const struct arrow *)a->source, p->batch, 0,
				  LOADED_MOST, err};
	int e;

	if (own->column->dtype.kind != DTYPE_BLOB || !c->view || p->codec)
		return 0;
	e = arrow_view_length(&r, c, b->start[0], bytes);
	return e < 0 ? e : 1;
}

const struct array_ops arrow_cells_ops = {
	.learn = arrow_cells_learn,
	.values = arrow_cells_hand_values,
	.length = arrow_cells_length,
	.attributes = arrow_own_attributes,
	.free = arrow_own_done,
};

/* Average bytes of a value in the dictionaries of a cell, for a row of two bytes may
 * stand for a value of many. */
static uint64_t dictionaries_mean(const struct arrow *s,
				  const struct arrow_cell *c)
{
	const struct arrow_addition *a;
	uint64_t mean = 0, pos, size;
	size_t n = c->kind == CELL_DICTIONARY
			   ? arrow_dictionary_at(s, c->id, UINT64_MAX, &a)
			   : 0;

	for (size_t i = 0; i < n; i++) {
		const struct arrow_batch *b = &a[i].kept->batch;
		uint64_t sum = 0;

		for (uint32_t k = 0; k < b->buffers.n; k++) {
			arrow_batch_buffer(b, k, 0, &pos, &size);
			sum += size;
		}
		mean = max_u64(mean, div_up(sum, max_u64(b->rows, 1)));
	}
	for (uint32_t i = 0; i < c->n; i++)
		mean += dictionaries_mean(s, &c->child[i]);
	return c->values ? mean + dictionaries_mean(s, c->values) : mean;
}

uint64_t arrow_cells_mean(const struct arrow *s, const struct arrow_own *own)
{
	const struct arrow_column *c = own->column;
	uint64_t mean = 0;

	for (size_t i = 0; i < own->parts.n; i++) {
		const struct arrow_part *p = &own->parts.at[i];
		const struct arrow_batch *b = &p->batch->batch;
		const struct arrow_counts *at = &c->cell.at;
		uint64_t pos, size, sum = 0, from = at->buffers, end;

		for (uint32_t k = 0; k < at->views; k++)
			from += arrow_batch_more(b, k);
		end = from + c->all.buffers;
		for (uint32_t k = 0; k < c->all.views; k++)
			end += arrow_batch_more(b, at->views + k);
		for (; from < end; from++) {
			arrow_batch_buffer(b, (uint32_t)from, 0, &pos, &size);
			sum += size;
		}
		mean = max_u64(mean, div_up(sum, p->piece.rows));
	}
	return mean + dictionaries_mean(s, &c->cell);
}
