/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads columns whose rows have levels, from pages that need not begin with a row. */
/*
 * A page of version 1 does not tell how many rows begin in it.  The number is learnt
 * when the page is decoded, and kept: later reads begin at the page that they need.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/parquet/read.h"

/* ---- rows of any column ------------------------------------------------------- */

struct walking {
	struct parquet_reading r; /* r.row: rows that have begun so far */
	const struct parquet_entries *to;
	bool from_start; /* reading began at the first page of the chunk */
};

/* Count rows, and hand on the entries of those that are wanted. */
static int walking_hand_entry(void *ctx, unsigned again, unsigned level,
			      const unsigned char *v, size_t len)
{
	struct walking *w = ctx;
	struct parquet_reading *r = &w->r;

	if (again && w->from_start && !r->row)
		return error_set(r->err, -EBADMSG,
				 "its first page begins within a list");
	if (!again && r->row == r->chunk->rows)
		return error_set(r->err, -EBADMSG,
				 "there are more lists than rows");
	r->row += !again;
	if (r->row <= r->first || r->row > r->end)
		return 0;
	return w->to->entry(w->to->ctx, again, level, v, len);
}

static int lists_decode_page(struct walking *w, const struct parquet_index *x,
			     size_t i, struct parquet_decoded *out)
{
	cleanup_free unsigned char *data = NULL;
	struct parquet_reading *r = &w->r;
	uint64_t end = x->limit, pos = x->at[i].pos;
	uint64_t values =
		(i + 1 < x->n ? x->at[i + 1].row : x->rows) - x->at[i].row;
	struct parquet_page p;
	int e = parquet_head(r->s, pos, end - pos, &p, r->err);

	if (e == 0 && p.values != values)
		e = error_set(r->err, -EBADMSG,
			      "a page changed since it was read first: the "
			      "file was overwritten");
	if (e == 0)
		e = parquet_read_body(r, &p, pos + p.header, &data);
	return e < 0 ? e
		     : parquet_page_decode(r->c, &p, data, p.size,
					   &r->dictionary, out, r->err);
}

static int lists_read_page(struct walking *w, const struct parquet_index *x,
			   size_t i)
{
	const struct parquet_entries to = {walking_hand_entry, w};
	struct parquet_reading *r = &w->r;
	struct parquet_decoded own = {.n = 0};
	const struct parquet_decoded *d = &own;
	const struct parquet_kept *k = parquet_kept_decoded(x, i, &d);
	int e = k ? 0 : lists_decode_page(w, x, i, &own);

	if (e == 0 && !k)
		k = parquet_kept_put_decoded(x, i, &own);
	if (e == 0)
		e = parquet_decoded_put(r->c, d, &to, r->err);
	if (e == 0)
		atomic_store(&x->lists[i + 1], r->row);
	if (k)
		parquet_kept_release(k);
	else
		parquet_decoded_free(&own);
	return e;
}

/* Return the last page that is known to begin not behind row `row`. */
static size_t first_page(const struct parquet_index *x, uint64_t row)
{
	size_t i = 0;

	while (i + 1 < x->n && atomic_load(&x->lists[i + 1]) <= row)
		i++;
	return i;
}

/* Read pages until a row begins that is not wanted any more. */
static int lists_read_pages(struct walking *w, const struct parquet_index *x)
{
	struct parquet_reading *r = &w->r;
	size_t i = first_page(x, r->first);
	int e = parquet_read_dictionary(r, x);

	r->row = atomic_load(&x->lists[i]);
	w->from_start = !i;
	for (; e == 0 && i < x->n && r->row <= r->end; i++)
		e = lists_read_page(w, x, i);
	if (e < 0 || r->row > r->end)
		return e;
	if (x->rows != r->chunk->values)
		return error_set(r->err, -EBADMSG, "a page is damaged");
	if (r->row != r->chunk->rows)
		return error_set(r->err, -EBADMSG,
				 "there are fewer lists than rows");
	return 0;
}

int parquet_read_entries(const struct arrays *s, const struct parquet_column *c,
			 uint32_t part, uint64_t first, uint64_t n,
			 const struct parquet_entries *to, struct error *err)
{
	struct walking w = {.r = {.s = s,
				  .c = c,
				  .chunk = &c->chunks[part],
				  .first = first,
				  .end = first + n,
				  .err = err},
			    .to = to};
	const struct parquet_index *x;
	int e = parquet_index(s, c, w.r.chunk, &x, err);

	if (e == 0 && x->wrong)
		e = error_set(err, -EBADMSG, "%s", x->wrong);
	if (e == 0)
		e = lists_read_pages(&w, x);
	parquet_reading_end(&w.r);
	return e;
}

/* ---- lists of numbers ---------------------------------------------------------- */

struct listing {
	const struct parquet_column *c;
	parquet_put *put;
	void *ctx;
	bool open;           /* a list has begun */
	unsigned char *data; /* the numbers of the list so far */
	size_t used, room;
	uint64_t row; /* row of the column that the next list is */
	struct error *err;
};

static void listing_finish(struct listing *l)
{
	if (l->open)
		l->put(l->ctx, l->data, l->used);
	l->open = false;
	l->used = 0;
}

static int listing_add_entry(void *ctx, unsigned again, unsigned level,
			     const unsigned char *v, size_t len)
{
	struct listing *l = ctx;

	if (again && level < l->c->list_level)
		return error_set(l->err, -EBADMSG, "a page is damaged");
	if (!again) {
		listing_finish(l);
		l->row++;
	}
	l->open = true;
	if (!v && level >= l->c->list_level)
		return error_set(l->err, -EBADMSG,
				 "values are missing (nulls) in the list of "
				 "row %llu",
				 (unsigned long long)l->row - 1);
	if (l->room - l->used < len) {
		size_t room = 2 * l->room + 256;
		unsigned char *data = realloc(l->data, room);

		if (!data)
			return error_no_memory(l->err, "the numbers of a list");
		l->data = data;
		l->room = room;
	}
	if (len)
		memcpy(l->data + l->used, v, len);
	l->used += len;
	return 0;
}

int parquet_read_lists(struct array *a, uint32_t part, uint64_t first,
		       uint64_t n, parquet_put *put_list, void *ctx,
		       struct error *err)
{
	struct listing l = {.c = a->own,
			    .put = put_list,
			    .ctx = ctx,
			    .row = first,
			    .err = err};
	const struct parquet_entries to = {listing_add_entry, &l};
	int e;

	for (uint32_t i = 0; i < part; i++)
		l.row += l.c->chunks[i].rows;
	e = parquet_read_entries(a->source, l.c, part, first, n, &to, err);
	if (e == 0)
		listing_finish(&l);
	free(l.data);
	return e;
}
