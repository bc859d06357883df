/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of lists: from pages that need not begin with a row. */
/*
 * A page of version 1 does not say how many lists begin in it, so that is learnt when it
 * is decoded, and kept: who comes later begins at the page that he needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "source/parquet_read.h"

struct listing {
	struct parquet_reading r; /* r.row: lists that have begun */
	bool open;                /* one of them goes on */
	bool from_start;          /* of the chunk */
	unsigned char *data;      /* of the present one */
	size_t used, room;
};

static bool is_wanted(const struct listing *l)
{
	return l->open && l->r.row > l->r.first && l->r.row <= l->r.end;
}

static void finish(struct listing *l)
{
	if (is_wanted(l))
		l->r.put(l->r.ctx, l->data, l->used);
	l->open = false;
	l->used = 0;
}

static int begin(void *ctx)
{
	struct listing *l = ctx;

	finish(l);
	if (l->r.row == l->r.chunk->rows)
		return error_set(l->r.err, -EBADMSG,
				 "there are more lists than rows");
	l->r.row++;
	l->open = true;
	return 0;
}

static int put(void *ctx, const unsigned char *v, size_t len)
{
	struct listing *l = ctx;

	if (!l->open && l->from_start && !l->r.row)
		return error_set(l->r.err, -EBADMSG,
				 "its first page begins within a list");
	if (!is_wanted(l)) /* or the rest of one from an earlier page */
		return 0;
	if (!v)
		return error_set(l->r.err, -EBADMSG,
				 "values are missing (nulls) in a list");
	if (l->room - l->used < len) {
		size_t room = 2 * l->room + 256;
		unsigned char *data = realloc(l->data, room);

		if (!data)
			return error_set(l->r.err, -ENOMEM, "out of memory");
		l->data = data;
		l->room = room;
	}
	memcpy(l->data + l->used, v, len);
	l->used += len;
	return 0;
}

static int read_page(struct listing *l, const struct parquet_index *x, size_t i)
{
	cleanup_free unsigned char *data = NULL;
	const struct parquet_lists to = {begin, put, l};
	struct parquet_reading *r = &l->r;
	uint64_t end = r->chunk->pos + r->chunk->size, pos = x->at[i].pos;
	uint64_t values =
		(i + 1 < x->n ? x->at[i + 1].row : x->rows) - x->at[i].row;
	struct parquet_page p;
	int e = parquet_head(r->s, pos, end - pos, &p, r->err);

	if (e == 0 && p.values != values)
		e = error_set(r->err, -EBADMSG, "a page is not what it was");
	if (e == 0)
		e = parquet_read_body(r, &p, pos + p.header, &data);
	if (e == 0)
		e = parquet_page_lists(r->c, &p, data, p.size, &r->dictionary,
				       &to, r->err);
	if (e == 0)
		atomic_store(&x->lists[i + 1], r->row);
	return e;
}

/* The last page that is known to have, or to be in front of, the first row. */
static size_t first_page(const struct parquet_index *x, uint64_t row)
{
	size_t i = 0;

	while (i + 1 < x->n && atomic_load(&x->lists[i + 1]) <= row)
		i++;
	return i;
}

static int read_pages(struct listing *l, const struct parquet_index *x)
{
	struct parquet_reading *r = &l->r;
	size_t i = first_page(x, r->first);
	int e = parquet_read_dictionary(r, x);

	r->row = atomic_load(&x->lists[i]);
	l->from_start = !i;
	for (; e == 0 && i < x->n && r->row <= r->end; i++)
		e = read_page(l, x, i);
	if (e < 0 || r->row > r->end)
		return e;
	if (x->rows != r->chunk->values)
		return error_set(r->err, -EBADMSG, "a page is damaged");
	if (r->row != r->chunk->rows)
		return error_set(r->err, -EBADMSG,
				 "there are fewer lists than rows");
	finish(l);
	return 0;
}

int parquet_read_lists(struct array *a, uint32_t part, uint64_t first,
		       uint64_t n, parquet_put *put_list, void *ctx,
		       struct error *err)
{
	const struct parquet_column *c = a->own;
	struct listing l = {.r = {.s = a->source,
				  .c = c,
				  .chunk = &c->chunks[part],
				  .first = first,
				  .end = first + n,
				  .put = put_list,
				  .ctx = ctx,
				  .err = err}};
	const struct parquet_index *x;
	int e = parquet_index(l.r.s, c, l.r.chunk, &x, err);

	if (e == 0 && x->wrong)
		e = error_set(err, -EBADMSG, "%s", x->wrong);
	if (e == 0)
		e = read_pages(&l, x);
	parquet_dictionary_free(&l.r.dictionary);
	free(l.data);
	return e;
}
