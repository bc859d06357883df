/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a Parquet file; its plain columns are tensors, decoded by row group. */
#include "source/parquet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "source/arrays.h"
#include "source/parquet_index.h"
#include "source/suffix.h"
#include "source/unpack.h"

#define MAGIC "PAR1"
#define MAGIC_ENCRYPTED "PARE"
#define FOOTER_MOST (UINT32_C(256) << 20)

struct parquet {
	struct arrays arrays; /* first member */
	struct parquet_meta meta;
};

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* ---- pages ---------------------------------------------------------------- */

/* Values [first, end) of a chunk are wanted; the next page begins with `row`. */
struct reading {
	const struct arrays *s;
	const struct parquet_column *c;
	struct parquet_chunk *chunk;
	uint64_t first, end, row;
	parquet_put *put;
	void *ctx;
	struct parquet_dictionary dictionary;
	struct error *err;
};

static enum unpack unpack_of(int64_t codec)
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

/* All of a page, decoded (malloc'ed): page->size bytes. */
static int read_body(const struct reading *r, const struct parquet_page *p,
		     uint64_t pos, unsigned char **out)
{
	cleanup_free unsigned char *stored = malloc(p->stored ? p->stored : 1);
	cleanup_free unsigned char *data = malloc(p->size ? p->size : 1);
	enum unpack how = unpack_of(r->chunk->codec);
	int e;

	if (!stored || !data)
		return no_memory(r->err);
	if (p->type == PARQUET_PAGE_DATA_2 && !p->packed)
		how = UNPACK_NOTHING;
	e = arrays_read(r->s, pos, stored, p->stored, r->err);
	if (e == 0 && p->has_crc && crc32_z(0, stored, p->stored) != p->crc)
		e = error_set(r->err, -EBADMSG,
			      "a page's checksum is not that of its bytes");
	if (e < 0)
		return e;
	memcpy(data, stored, p->levels);
	e = unpack(how, stored + p->levels, p->stored - p->levels,
		   data + p->levels, p->size - p->levels, r->err);
	if (e == 0)
		*out = steal_pointer(&data);
	return e;
}

static int read_dictionary(struct reading *r, const struct parquet_index *x)
{
	uint64_t left = r->chunk->pos + r->chunk->size - x->dictionary;
	struct parquet_page p;
	unsigned char *data;
	int e;

	if (!x->dictionary)
		return 0;
	e = parquet_head(r->s, x->dictionary, left, &p, r->err);
	if (e == 0)
		e = read_body(r, &p, x->dictionary + p.header, &data);
	return e < 0 ? e
		     : parquet_dictionary_read(r->c, &p, data, p.size,
					       &r->dictionary, r->err);
}

/* Hands on what of a page's values is wanted. */
struct cutting {
	struct reading *r;
	uint64_t at;
};

static void put_cut(void *ctx, const unsigned char *v, size_t len)
{
	struct cutting *k = ctx;
	struct reading *r = k->r;
	uint64_t n = r->c->width ? len / r->c->width : 1;
	uint64_t from = max_u64(k->at, r->first);
	uint64_t to = min_u64(k->at + n, r->end);

	if (from < to && r->c->width)
		r->put(r->ctx, v + (from - k->at) * r->c->width,
		       (to - from) * r->c->width);
	else if (from < to)
		r->put(r->ctx, v, len);
	k->at += n;
}

static int read_values(struct reading *r, const struct parquet_page *p,
		       uint64_t pos)
{
	cleanup_free unsigned char *data = NULL;
	struct cutting k = {r, r->row};
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
	e = read_body(r, p, pos, &data);
	return e < 0 ? e
		     : parquet_page_values(r->c, p, data, p->size,
					   &r->dictionary, put_cut, &k, r->err);
}

/* From the first page that is wanted on; what the index does not have is damaged. */
static int read_pages(struct reading *r, const struct parquet_index *x)
{
	size_t i = parquet_index_find(x, r->first);
	uint64_t end = r->chunk->pos + r->chunk->size;
	int e = read_dictionary(r, x);

	r->row = i < x->n ? x->at[i].row : x->rows;
	for (; e == 0 && r->row < r->end; i++) {
		uint64_t pos = i < x->n ? x->at[i].pos : x->end;
		struct parquet_page p;

		e = parquet_head(r->s, pos, end - pos, &p, r->err);
		if (e == 0 && i >= x->n)
			e = error_set(r->err, -EBADMSG,
				      p.type == PARQUET_PAGE_DICTIONARY
					      ? "a column has two dictionaries"
					      : "a page is damaged");
		if (e == 0)
			e = read_values(r, &p, pos + p.header);
		if (e == 0 && i + 1 < x->n && r->row != x->at[i + 1].row)
			e = error_set(r->err, -EBADMSG,
				      "a page is not what it was");
	}
	return e;
}

static int read_chunk(struct array *a, uint32_t part, uint64_t first,
		      uint64_t n, parquet_put *put, void *ctx,
		      struct error *err)
{
	struct reading r = {.s = a->source,
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
		e = read_pages(&r, x);
	parquet_dictionary_free(&r.dictionary);
	return e;
}

/* ---- arrays --------------------------------------------------------------- */

static void part_layout(const struct parquet *s, const struct parquet_column *c,
			uint32_t part, uint64_t rows, struct array_layout *l)
{
	l->kind = ARRAY_MADE;
	l->maker = "tensorfs: from Parquet pages";
	l->file = s->arrays.file;
	l->stored = c->dtype;
	l->shape[0] = c->chunks[part].rows;
	l->chunk[0] = rows;
}

/* Is it decoded at once, whatever its pages are? */
static bool is_small(const struct parquet_column *c, uint32_t part)
{
	return c->text || c->chunks[part].rows <= PARQUET_PIECE / c->dtype.size;
}

static int learn(struct array *a, uint32_t part, struct array_layout *out,
		 struct error *err)
{
	const struct parquet_column *c = a->own;
	struct parquet_chunk *k = &c->chunks[part];
	const struct parquet_index *x;
	uint64_t rows = k->rows;
	int r = 0;

	if (!is_small(c, part)) {
		r = parquet_index(a->source, c, k, &x, err);
		if (r == 0 && x->wrong)
			r = error_set(err, -EBADMSG, "%s", x->wrong);
		rows = r == 0 ? x->piece : 0;
	}
	part_layout((struct parquet *)a->source, c, part, rows, out);
	return r;
}

/* Numbers on their way out; those of 8 and 16 bits are stored as 32. */
struct making {
	unsigned char *out;
	size_t left, width, size;
	bool is_signed, odd;
};

static void put_number(struct making *m, const unsigned char *v)
{
	uint32_t all = load_le32(v), low = all & ((1u << 8 * m->size) - 1);
	uint32_t sign = low >> (8 * m->size - 1) & 1;

	if (m->is_signed && sign)
		low |= ~((1u << 8 * m->size) - 1);
	m->odd |= low != all;
	memcpy(m->out, v, m->size);
}

static void put_made(void *ctx, const unsigned char *v, size_t len)
{
	struct making *m = ctx;

	if (m->size == m->width) {
		len = min_u64(len, m->left);
		memcpy(m->out, v, len);
		m->out += len;
		m->left -= len;
		return;
	}
	for (; len >= m->width && m->left >= m->size; v += m->width) {
		put_number(m, v);
		m->out += m->size;
		m->left -= m->size;
		len -= m->width;
	}
}

static int make(struct array *a, uint32_t part, const struct grid *g,
		uint64_t chunk, void *out, size_t size, struct error *err)
{
	const struct parquet_column *c = a->own;
	struct making m = {
		out,  size, c->width, c->dtype.size, c->dtype.kind == DTYPE_INT,
		false};
	uint64_t first = chunk * g->chunk[0];
	uint64_t n = min_u64(g->chunk[0], c->chunks[part].rows - first);
	int r;

	m.left = n * m.size; /* the last one is shorter than the others */
	memset(m.out + m.left, 0, size - m.left);
	r = read_chunk(a, part, first, n, put_made, &m, err);
	if (r == 0 && m.left)
		r = error_set(err, -EBADMSG, "values are missing in it");
	if (r == 0 && m.odd)
		r = error_set(err, -EBADMSG,
			      "a number does not fit in the %zu bits that its "
			      "column has",
			      8 * m.size);
	return r;
}

struct telling {
	void (*put)(void *ctx, const char *s, size_t len);
	void *ctx;
};

static void put_text(void *ctx, const unsigned char *v, size_t len)
{
	struct telling *t = ctx;

	t->put(t->ctx, (const char *)v, len);
}

static int values(struct array *a, uint32_t part, const struct box *b,
		  void (*put)(void *ctx, const char *s, size_t len), void *ctx,
		  struct error *err)
{
	struct telling t = {put, ctx};

	return read_chunk(a, part, b->start[0], b->count[0], put_text, &t, err);
}

static bool origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct parquet_column *c = a->own;
	const struct parquet *s = (const struct parquet *)a->source;
	const struct parquet_chunk *k = &c->chunks[part];

	return fprintf(out,
		       "column %td, %" PRIu64 " rows in bytes %" PRIu64
		       "+%" PRIu64,
		       c - s->meta.at, k->rows, k->pos, k->size) > 0;
}

static json_t *attributes(const struct array *a)
{
	return json_deep_copy(((struct parquet *)a->source)->meta.attributes);
}

static const struct array_ops parquet_ops = {.learn = learn,
					     .make = make,
					     .origin = origin,
					     .attributes = attributes};
static const struct array_ops parquet_text_ops = {
	.learn = learn, .values = values, .attributes = attributes};

/* ---- the tree ------------------------------------------------------------- */

static int check_column(const struct parquet_column *c, struct error *err)
{
	if (c->why_not)
		return error_set(err, -ENOTSUP, "%s", c->why_not);
	if (c->nulls && c->dtype.kind != DTYPE_BLOB)
		return error_set(err, -ENOTSUP,
				 "values are missing in it (nulls), which no "
				 "array can show: fill them in first");
	for (uint32_t i = 0; i < c->n_chunks; i++) {
		const struct parquet_chunk *k = &c->chunks[i];

		if (unpack_of(k->codec) == UNPACK_UNKNOWN ||
		    !unpack_known(unpack_of(k->codec)))
			return error_set(err, -ENOTSUP,
					 "it is compressed in a way that is "
					 "not supported: only snappy, gzip, "
					 "zstd and raw lz4 are");
	}
	return 0;
}

static int new_array(struct parquet *s, struct parquet_column *c,
		     struct array **out, struct error *err)
{
	cleanup_free struct array_part *parts = NULL;
	struct array_layout l = {.kind = ARRAY_ABSENT};
	struct array_spec spec = {.stored = c->dtype,
				  .rank = 1,
				  .note = *c->note ? c->note : NULL,
				  .layout = &l,
				  .own = c};
	int r = check_column(c, err);

	if (r < 0)
		return r;
	spec.ops = c->text ? &parquet_text_ops : &parquet_ops;
	spec.text_bytes =
		c->dtype.kind == DTYPE_BLOB ? parquet_column_mean(c) : 0;
	spec.name = c->name;
	spec.shape[0] = s->meta.rows;
	l.stored = c->dtype;
	l.file = s->arrays.file;
	if (c->n_chunks == 1 && is_small(c, 0)) {
		part_layout(s, c, 0, c->chunks[0].rows, &l);
	} else if (c->n_chunks) {
		parts = calloc(c->n_chunks, sizeof *parts);
		if (!parts)
			return no_memory(err);
		for (uint32_t i = 0; i < c->n_chunks; i++)
			parts[i] = (struct array_part){s->arrays.file, c->name,
						       c->chunks[i].rows};
		spec.layout = NULL;
		spec.parts = parts;
		spec.nparts = c->n_chunks;
	}
	return array_new(&s->arrays, &spec, out, err);
}

static int publish_column(struct parquet *s, const struct source_args *a,
			  struct parquet_column *c, struct error *err)
{
	struct error why = {.code = 0};
	struct array *array;
	size_t n;
	int r;

	if (c->hidden)
		return 0;
	if (c->dtype.kind == DTYPE_STRING &&
	    suffix_named(s->arrays.views.ext, c->name, &n))
		parquet_column_as_blob(c);
	r = new_array(s, c, &array, &why);
	if (r == 0 && c->dtype.kind == DTYPE_BLOB)
		r = suffix_set(array, c->name, false, &why);
	if (r == 0)
		return array_publish(a->tree, a->dir, c->name, array, NULL,
				     err);
	if (r == -ENOTSUP)
		return array_publish_not(&s->arrays, a->tree, a->dir, c->name,
					 &why, err);
	return error_set(err, r, "\"%.80s\": %s", c->name, why.text);
}

static int publish(struct arrays *arrays, const struct source_args *a,
		   struct error *err)
{
	struct parquet *s = (struct parquet *)arrays;
	cleanup_free unsigned char *footer = NULL;
	unsigned char tail[8];
	uint64_t n, size = s->arrays.size;
	int r;

	if (size < 12)
		return error_set(err, -EBADMSG, "it is cut off");
	r = arrays_read(&s->arrays, size - 8, tail, 8, err);
	if (r < 0)
		return r;
	if (!memcmp(tail + 4, MAGIC_ENCRYPTED, 4))
		return error_set(err, -ENOTSUP, "it is encrypted");
	n = load_le32(tail);
	if (memcmp(tail + 4, MAGIC, 4) || n > size - 12)
		return error_set(err, -EBADMSG,
				 "its footer is not at its end: truncated?");
	if (n > FOOTER_MOST)
		return error_set(err, -ENOTSUP,
				 "its footer is longer than 256 MiB");
	footer = malloc(n ? n : 1);
	if (!footer)
		return no_memory(err);
	r = arrays_read(&s->arrays, size - 8 - n, footer, n, err);
	if (r == 0)
		r = parquet_meta_read(footer, n, size, &s->meta, err);
	for (uint32_t i = 0; r == 0 && i < s->meta.n; i++)
		r = publish_column(s, a, &s->meta.at[i], err);
	return r;
}

static int parquet_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)path;
	return n >= 4 && (!memcmp(head, MAGIC, 4) ||
			  !memcmp(head, MAGIC_ENCRYPTED, 4))
		       ? 90
		       : 0;
}

static void parquet_close(struct source *source)
{
	struct parquet *s = (struct parquet *)source;

	parquet_meta_free(&s->meta);
	arrays_end(&s->arrays);
	free(s);
}

static int parquet_open(const struct source_args *a, struct source **out,
			struct error *err)
{
	return arrays_open(&source_parquet, sizeof(struct parquet), publish, a,
			   out, err);
}

const struct source_ops source_parquet = {
	.name = "parquet",
	.summary = "Parquet files (a subset: plain columns)",
	.probe = parquet_probe,
	.open = parquet_open,
	.usage = arrays_usage,
	.close = parquet_close,
};
