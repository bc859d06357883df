/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads rows of a Parquet column from the pages that have them. */
#include "formats/parquet/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/parquet/kept.h"

enum unpack parquet_unpack(int64_t codec)
{
	static const enum unpack of[] = {[0] = UNPACK_NOTHING,
					 [1] = UNPACK_SNAPPY,
					 [2] = UNPACK_GZIP,
					 [6] = UNPACK_ZSTD,
					 [7] = UNPACK_LZ4_BLOCK};

	if (codec == 0)
		return UNPACK_NOTHING;
	return codec > 0 && codec < 8 && of[codec] ? of[codec] : UNPACK_UNKNOWN;
}

int parquet_read_body(const struct parquet_reading *r,
		      const struct parquet_page *p, uint64_t pos,
		      unsigned char **out)
{
	cleanup_free unsigned char *stored = malloc(p->stored ? p->stored : 1);
	cleanup_free unsigned char *data = malloc(p->size ? p->size : 1);
	enum unpack how = parquet_unpack(r->chunk->codec);
	int e;

	if (!stored || !data)
		return error_no_memory(r->err, "a page and its decoded bytes");
	if (p->type == PARQUET_PAGE_DATA_2 && !p->packed)
		how = UNPACK_NOTHING;
	e = arrays_read(r->s, pos, stored, p->stored, r->err);
	if (e == 0 && p->has_crc && crc32_z(0, stored, p->stored) != p->crc)
		e = error_set(r->err, -EBADMSG,
			      "a page's checksum does not match its bytes");
	if (e < 0)
		return e;
	memcpy(data, stored, p->levels);
	e = unpack(how, stored + p->levels, p->stored - p->levels,
		   data + p->levels, p->size - p->levels, r->err);
	if (e == 0)
		*out = steal_pointer(&data);
	return e;
}

int parquet_read_dictionary(struct parquet_reading *r,
			    const struct parquet_index *x)
{
	uint64_t left = x->limit - x->dictionary;
	struct parquet_page p;
	unsigned char *data;
	int e;

	if (!x->dictionary)
		return 0;
	r->kept = parquet_kept_dictionary(x, &r->dictionary);
	if (r->kept)
		return 0;
	e = parquet_head(r->s, x->dictionary, left, &p, r->err);
	if (e == 0)
		e = parquet_read_body(r, &p, x->dictionary + p.header, &data);
	if (e == 0)
		e = parquet_dictionary_read(r->c, &p, data, p.size,
					    &r->dictionary, r->err);
	if (e == 0)
		r->kept =
			parquet_kept_put_dictionary(x, &r->dictionary, p.size);
	return e;
}

void parquet_reading_end(struct parquet_reading *r)
{
	if (r->kept)
		parquet_kept_release(r->kept);
	else
		parquet_dictionary_free(&r->dictionary);
}

/* Passes on those values of a page that are wanted. */
struct cutting {
	struct parquet_reading *r;
	uint64_t at;
	struct parquet_kept *keep; /* gets all texts of the page, or NULL */
};

static void put_cut(void *ctx, const unsigned char *v, size_t len)
{
	struct cutting *k = ctx;
	struct parquet_reading *r = k->r;
	uint64_t n = r->c->width ? len / r->c->width : 1;
	uint64_t from = max_u64(k->at, r->first);
	uint64_t to = min_u64(k->at + n, r->end);

	if (from < to && r->c->width)
		r->put(r->ctx, v + (from - k->at) * r->c->width,
		       (to - from) * r->c->width);
	else if (from < to)
		r->put(r->ctx, v, len);
	if (k->keep)
		parquet_kept_add(k->keep, v, len);
	k->at += n;
}

static int reading_read_page(struct parquet_reading *r,
			     const struct parquet_index *x,
			     const struct parquet_page *p, size_t page,
			     uint64_t pos)
{
	cleanup_free unsigned char *data = NULL;
	struct cutting k = {r, r->row, NULL};
	int e;

	if (p->values > r->chunk->rows - r->row)
		return error_set(r->err, -EBADMSG,
				 "there are more values than rows");
	if (p->rows >= 0 && p->rows != p->values)
		return error_set(r->err, -EBADMSG,
				 "a page has %u values of %lld rows", p->values,
				 (long long)p->rows);
	r->row += p->values;
	if (r->row <= r->first)
		return 0;
	e = r->dictionary.data ? 0 : parquet_read_dictionary(r, x);
	if (e == 0)
		e = parquet_read_body(r, p, pos, &data);
	if (e < 0)
		return e;
	if (!r->c->width)
		k.keep = parquet_kept_new(x, page, p->values, p->size);
	e = parquet_page_values(r->c, p, data, p->size, &r->dictionary, put_cut,
				&k, r->err);
	parquet_kept_end(k.keep, e == 0);
	return e;
}

/* Hand on the wanted texts of a page if it is kept decoded; else return false. */
static bool put_kept(struct parquet_reading *r, const struct parquet_index *x,
		     size_t page)
{
	const struct parquet_kept *k;
	uint64_t end = page + 1 < x->n ? x->at[page + 1].row : x->rows;

	k = r->c->width ? NULL : parquet_kept_get(x, page);
	if (!k)
		return false;
	parquet_kept_put(k, max_u64(r->first, r->row) - r->row,
			 min_u64(r->end, end) - r->row, r->put, r->ctx);
	parquet_kept_release(k);
	r->row = end;
	return true;
}

/* Read from the first wanted page on.  If the index lacks a page, it is damaged. */
static int reading_read_pages(struct parquet_reading *r,
			      const struct parquet_index *x)
{
	size_t i = parquet_index_find(x, r->first);
	uint64_t end = x->limit;
	int e = 0;

	r->row = i < x->n ? x->at[i].row : x->rows;
	for (; e == 0 && r->row < r->end; i++) {
		uint64_t pos = i < x->n ? x->at[i].pos : x->end;
		struct parquet_page p;

		if (i < x->n && put_kept(r, x, i))
			continue;
		e = parquet_head(r->s, pos, end - pos, &p, r->err);
		if (e == 0 && i >= x->n)
			e = error_set(r->err, -EBADMSG,
				      p.type == PARQUET_PAGE_DICTIONARY
					      ? "a column has two dictionaries"
					      : "a page is damaged");
		if (e == 0)
			e = reading_read_page(r, x, &p, i, pos + p.header);
		if (e == 0 && i + 1 < x->n && r->row != x->at[i + 1].row)
			e = error_set(r->err, -EBADMSG,
				      "a page changed since it was read first: "
				      "the file was overwritten");
	}
	return e;
}

int parquet_read(struct array *a, uint32_t part, uint64_t first, uint64_t n,
		 parquet_put *put, void *ctx, struct error *err)
{
	struct parquet_reading r = {.s = a->source,
				    .c = a->own,
				    .first = first,
				    .end = first + n,
				    .put = put,
				    .ctx = ctx,
				    .err = err};
	const struct parquet_index *x;
	int e;

	r.chunk = &r.c->chunks[part];
	e = parquet_index(r.s, r.c, r.chunk, &x, err);
	if (e == 0 && x->wrong)
		e = error_set(err, -EBADMSG, "%s", x->wrong);
	if (e == 0)
		e = reading_read_pages(&r, x);
	parquet_reading_end(&r);
	return e;
}

/* ---- numbers -------------------------------------------------------------- */

static void making_put_number(struct parquet_making *m, const unsigned char *v)
{
	uint32_t all = load_le32(v), low = all & ((1u << 8 * m->size) - 1);
	uint32_t sign = low >> (8 * m->size - 1) & 1;

	if (m->is_signed && sign)
		low |= ~((1u << 8 * m->size) - 1);
	m->odd |= low != all;
	memcpy(m->out, v, m->size);
}

void parquet_put_made(void *ctx, const unsigned char *v, size_t len)
{
	struct parquet_making *m = ctx;

	if (m->size == m->width) {
		len = min_u64(len, m->left);
		memcpy(m->out, v, len);
		m->out += len;
		m->left -= len;
		return;
	}
	for (; len >= m->width && m->left >= m->size; v += m->width) {
		making_put_number(m, v);
		m->out += m->size;
		m->left -= m->size;
		len -= m->width;
	}
}
