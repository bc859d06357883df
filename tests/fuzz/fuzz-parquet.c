/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as the footer, or as a page, of a Parquet file. */
#include <errno.h>

#include "fuzz.h"
#include "formats/parquet/page.h"

#define FILE_SIZE 100000
/* Of all pages; what claims more takes long, and nothing else. */
#define VALUES_MOST (UINT32_C(1) << 20)

static void check_failed(const struct error *err)
{
	FUZZ_CHECK((err->code == -EBADMSG || err->code == -ENOTSUP) &&
		   *err->text);
}

static void check_footer(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct parquet_meta m;

	if (parquet_meta_read(data, size, FILE_SIZE, &m, &err) < 0) {
		check_failed(&err);
		return;
	}
	for (uint32_t i = 0; i < m.n; i++) {
		const struct parquet_column *c = &m.at[i];
		uint64_t rows = 0;

		if (c->why_not)
			continue;
		FUZZ_CHECK(c->dtype.size && (c->width || c->text));
		for (uint32_t k = 0; k < c->n_chunks; k++) {
			const struct parquet_chunk *p = &c->chunks[k];

			rows += p->rows;
			FUZZ_CHECK(p->pos <= FILE_SIZE &&
				   p->size <= FILE_SIZE - p->pos);
		}
		FUZZ_CHECK(rows == m.rows);
	}
	parquet_meta_free(&m);
}

struct counting {
	const struct parquet_column *c;
	uint64_t n;
	unsigned sum;
};

static void put(void *ctx, const unsigned char *v, size_t len)
{
	struct counting *k = ctx;

	for (size_t i = 0; i < len; i++)
		k->sum += v[i];
	k->n += k->c->width ? len / k->c->width : 1;
}

static int entry(void *ctx, unsigned again, unsigned level,
		 const unsigned char *v, size_t len)
{
	struct counting *k = ctx;

	FUZZ_CHECK(again <= k->c->max_repeats && level <= k->c->max_levels);
	FUZZ_CHECK(!v == (level < k->c->max_levels));
	FUZZ_CHECK(v || !len);
	if (v && k->c->width)
		FUZZ_CHECK(len == parquet_value_type(k->c)->size);
	for (size_t i = 0; i < len; i++)
		k->sum += v[i];
	k->n++;
	return 0;
}

static int entries(struct counting *k, const struct parquet_page *p,
		   const unsigned char *page, size_t n,
		   const struct parquet_dictionary *d, struct error *err)
{
	const struct parquet_entries to = {entry, k};

	struct parquet_decoded x;
	int r = parquet_page_decode(k->c, p, page, n, d, &x, err);

	if (r == 0)
		r = parquet_decoded_put(k->c, &x, &to, err);
	parquet_decoded_free(&x);
	return r;
}

/* A page header, what follows it is the page; a dictionary comes first. */
static void check_pages(const uint8_t *data, size_t size, uint8_t kind)
{
	static const struct {
		int64_t type;
		uint32_t width;
	} kinds[] = {{PARQUET_BOOLEAN, 1},
		     {PARQUET_INT32, 4},
		     {PARQUET_DOUBLE, 8},
		     {PARQUET_BYTES, 0},
		     {PARQUET_FIXED, 3}};
	struct parquet_column c = {.type = kinds[kind % 5].type,
				   .width = kinds[kind % 5].width,
				   .optional = kind & 8,
				   .levels = kind & 8 ? 1 : 0};
	struct parquet_dictionary d = {NULL, 0, NULL};
	struct error err = {0};
	struct counting k = {&c, 0, 0};
	struct parquet_page p;

	if (kind & 16 && c.type == PARQUET_BYTES) {
		parquet_column_as_blob(&c);
		c.optional = true;
		c.levels = 2;
	}
	if (kind & 32 && (c.width == 4 || c.width == 8)) {
		c.dtype.kind = DTYPE_RAGGED;
		c.item.type.kind = DTYPE_INT;
		c.item.type.size = kind & 64 ? 2 : c.width;
		c.optional = true;
		c.levels = c.max_levels = 3;
		c.list_level = 2;
		c.max_repeats = 1;
	} else if (kind & 64) {
		c.nested = c.optional = true;
		c.dtype.kind = c.width ? DTYPE_OPAQUE : DTYPE_STRING;
		c.dtype.size = c.width ? c.width : 4;
		c.levels = c.max_levels = 5;
		c.max_repeats = 2;
	}
	while (size && parquet_page_read(data, size, &p, &err) == 0 &&
	       p.values < VALUES_MOST) {
		size_t n = size - p.header < p.size ? size - p.header : p.size;
		unsigned char *page = malloc(n ? n : 1);

		FUZZ_CHECK(p.header && p.header <= size && p.levels <= p.size);
		memcpy(page, data + p.header, n);
		data += p.header + n;
		size -= p.header + n;
		k.n = 0;
		if (p.type == PARQUET_PAGE_DICTIONARY && !d.data) {
			if (parquet_dictionary_read(&c, &p, page, n, &d, &err))
				break;
			continue;
		}
		if (c.max_levels ? entries(&k, &p, page, n, &d, &err)
				 : parquet_page_values(&c, &p, page, n, &d, put,
						       &k, &err))
			check_failed(&err);
		else
			FUZZ_CHECK(k.n == p.values);
		free(page);
	}
	parquet_dictionary_free(&d);
}

/* The first byte says what it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t kind = fuzz_u8(&in);
	uint8_t *copy =
		malloc(in.size ? in.size : 1); /* of exactly this size */

	if (in.size)
		memcpy(copy, in.data, in.size);
	if (kind & 128)
		check_footer(copy, in.size);
	else
		check_pages(copy, in.size, kind);
	free(copy);
	return 0;
}
