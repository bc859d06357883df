/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the table of a column chunk's pages by reading all page headers. */
#include "formats/parquet/index.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/parquet/kept.h"

/* Bytes read of a page at first; a header with statistics may be longer. */
#define HEADER_FIRST 512
#define HEADER_MOST (UINT32_C(16) << 20)
#define PIECE_MOST (UINT64_C(4) << 30)

int parquet_head(const struct arrays *s, uint64_t pos, uint64_t left,
		 struct parquet_page *out, struct error *err)
{
	for (uint64_t n = HEADER_FIRST;; n *= 16) {
		size_t some = (size_t)min_u64(n, left);
		cleanup_free unsigned char *head = malloc(some ? some : 1);
		int e;

		if (!head)
			return error_no_memory(err, "the header of a page");
		e = arrays_read(s, pos, head, some, err);
		if (e < 0)
			return e;
		e = parquet_page_read(head, some, out, err);
		if (e == 0 && out->stored > left - out->header)
			return error_set(err, -EBADMSG,
					 "a page does not fit in its chunk");
		if (e == 0 || some == left || n >= HEADER_MOST)
			return e;
	}
}

/* ---- looking at all pages ---------------------------------------------------- */

struct walk {
	struct parquet_index *x;
	size_t room;
	uint64_t rows; /* values of the chunk */
	/* Values of the longest page, and of the first one. */
	uint64_t most, first;
	/* All pages but the last have as many values as the first. */
	bool even;
	uint64_t last;
	uint64_t dictionary; /* decoded bytes of the dictionary */
	bool gzip;           /* the codec is gzip, which has checksums */
	/* Length of the dictionary page's header, in bytes. */
	uint64_t spare;
};

static int add_mark(struct walk *w, uint64_t pos, uint32_t values,
		    struct error *err)
{
	struct parquet_index *x = w->x;

	if (x->n == w->room) {
		size_t room = w->room ? 2 * w->room : 8;
		struct parquet_mark *at = realloc(x->at, room * sizeof *at);

		if (!at)
			return error_no_memory(err, "the table of pages");
		x->at = at;
		w->room = room;
	}
	x->at[x->n++] = (struct parquet_mark){pos, x->rows};
	x->rows += values;
	w->even = w->even && (x->n < 3 || w->last == w->first);
	w->last = values;
	if (x->n == 1)
		w->first = values;
	w->most = max_u64(w->most, values);
	return 0;
}

/* Return true if a checksum covers all bytes of the page.  The CRC-32 of gzip covers
 * what was compressed, which the levels of a page of version 2 are not. */
static bool is_checked(const struct walk *w, const struct parquet_page *p)
{
	if (p->has_crc || !p->stored)
		return true;
	return w->gzip &&
	       (p->type != PARQUET_PAGE_DATA_2 || (p->packed && !p->levels));
}

static int add_page(struct walk *w, const struct parquet_page *p, uint64_t pos,
		    struct error *err)
{
	bool data =
		p->type == PARQUET_PAGE_DATA || p->type == PARQUET_PAGE_DATA_2;

	w->x->checked &= is_checked(w, p);
	if (p->type == PARQUET_PAGE_DICTIONARY) {
		if (w->x->dictionary)
			return error_set(err, -EBADMSG,
					 "a column has two dictionaries");
		w->x->dictionary = pos;
		w->dictionary = p->size;
		w->spare = p->header;
	}
	if (!data || !p->values)
		return 0;
	if (p->values <= w->rows - w->x->rows)
		return add_mark(w, pos, p->values, err);
	w->x->wrong = "there are more values than rows";
	return 0;
}

/* Some writers did not count the dictionary's header as part of the chunk (parquet-mr
 * before 1.2.9, IMPALA-694).  Then the last page ends behind the chunk, by exactly the
 * length of that header. */
static int index_walk_beyond(const struct arrays *s, struct walk *w,
			     struct parquet_page *p, struct error *err)
{
	struct parquet_index *x = w->x;
	uint64_t limit = x->limit + w->spare;
	int r = limit > s->size
			? error_set(err, -EBADMSG,
				    "a page does not fit in its chunk")
			: parquet_head(s, x->end, limit - x->end, p, err);

	if (r == 0 && x->end + p->header + p->stored != limit)
		r = error_set(err, -EBADMSG,
			      "a page does not fit in its chunk");
	if (r == 0)
		x->limit = limit;
	return r;
}

static int index_walk_pages(const struct arrays *s,
			    const struct parquet_chunk *k, struct walk *w,
			    struct error *err)
{
	struct parquet_index *x = w->x;
	int r = 0;

	x->limit = k->pos + k->size;
	for (x->end = k->pos; r == 0 && !x->wrong && x->end < x->limit;) {
		struct parquet_page p;

		r = parquet_head(s, x->end, x->limit - x->end, &p, err);
		if (r == -EBADMSG && w->spare)
			r = index_walk_beyond(s, w, &p, err);
		if (r == 0)
			r = add_page(w, &p, x->end, err);
		if (r == 0)
			x->end += (uint64_t)p.header + p.stored;
	}
	if (r == 0 && x->rows < w->rows && !x->wrong)
		x->wrong = "there are fewer values than rows";
	/* A read that gets to the damaged page reports it. */
	return r == -EBADMSG ? 0 : r;
}

/* Choose how many rows are decoded at once: so many that each page is decoded once, or
 * twice if the pages have different numbers of values. */
static int set_piece(const struct walk *w, uint64_t size, struct error *err)
{
	uint64_t rows = max_u64(PARQUET_PIECE / size, 1);

	rows = max_u64(rows, w->dictionary / size);
	if (w->even && w->first)
		rows = max_u64(rows / w->first, 1) * w->first;
	rows = max_u64(rows, w->most);
	w->x->piece = max_u64(min_u64(rows, w->rows), 1);
	return w->x->piece > PIECE_MOST / size
		       ? error_set(err, -ENOTSUP,
				   "a page has more than 4 GiB of values: "
				   "write smaller pages")
		       : 0;
}

static int make_index(const struct arrays *s, const struct parquet_column *c,
		      const struct parquet_chunk *k, struct parquet_index *x,
		      struct error *err)
{
	struct walk w = {.x = x,
			 .rows = k->values,
			 .even = true,
			 .gzip = k->codec == PARQUET_GZIP};
	int r;

	x->checked = true;
	r = index_walk_pages(s, k, &w, err);

	if (r == 0 && (c->dtype.kind == DTYPE_RAGGED || c->nested)) {
		x->lists = malloc((x->n + 1) * sizeof *x->lists);
		if (!x->lists)
			return error_no_memory(
				err, "the counts of rows before each page");
		for (size_t i = 0; i <= x->n; i++)
			atomic_init(&x->lists[i], i ? UINT64_MAX : 0);
	}
	return r < 0 ? r : set_piece(&w, max_u64(c->dtype.size, 1), err);
}

void parquet_index_free(struct parquet_index *x)
{
	if (x) {
		parquet_kept_forget(x);
		free(x->at);
		free(x->lists);
	}
	free(x);
}

int parquet_index(const struct arrays *s, const struct parquet_column *c,
		  struct parquet_chunk *k, const struct parquet_index **out,
		  struct error *err)
{
	struct parquet_index *x = atomic_load(&k->index), *none = NULL;
	int r;

	*out = x;
	if (x)
		return 0;
	x = calloc(1, sizeof *x);
	if (!x)
		return error_no_memory(err, "the index of a column's pages");
	r = make_index(s, c, k, x, err);
	if (r == 0 && atomic_compare_exchange_strong(&k->index, &none, x)) {
		*out = x;
		return 0;
	}
	parquet_index_free(x);
	*out = none; /* another thread's index, which came first */
	return r;
}

bool parquet_has_checksum(const struct arrays *s,
			  const struct parquet_column *c, uint32_t part)
{
	const struct parquet_index *x;

	return parquet_index(s, c, &c->chunks[part], &x, NULL) == 0 &&
	       x->checked;
}

size_t parquet_index_find(const struct parquet_index *x, uint64_t row)
{
	struct bisect b = bisect_in(1, x->n);

	while (bisect_next(&b))
		bisect_answer(&b, x->at[b.mid].row > row);
	return b.lo - 1;
}
