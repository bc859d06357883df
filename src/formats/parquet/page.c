/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads page headers, dictionaries, and values in the plain and dictionary encodings. */
/* The format is described in README.md and Encodings.md of parquet-format. */
#include "formats/parquet/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/parquet/encoding.h"
#include "formats/parquet/runs.h"
#include "formats/parquet/thrift.h"

static int page_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "a page is damaged");
}

/* ---- headers -------------------------------------------------------------- */

struct numbers {
	int64_t values, encoding, levels_encoding, repeats_encoding, levels,
		repeats, nulls, rows;
	bool packed;
};

/* Read a DataPageHeader or DictionaryPageHeader, whose first fields are alike. */
static void header_read_page(struct thrift *t, struct numbers *n)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			n->values = thrift_number(t, &f);
		else if (f.id == 2)
			n->encoding = thrift_number(t, &f);
		else if (f.id == 3 && f.type == THRIFT_I32)
			n->levels_encoding = thrift_number(t, &f);
		else if (f.id == 4 && f.type == THRIFT_I32)
			n->repeats_encoding = thrift_number(t, &f);
		else
			thrift_skip(t, f.type);
	}
}

static void header_read_page_2(struct thrift *t, struct numbers *n)
{
	struct thrift_field f = {0, 0};

	n->packed = true;
	while (thrift_next(t, &f)) {
		if (f.id == 1)
			n->values = thrift_number(t, &f);
		else if (f.id == 2)
			n->nulls = thrift_number(t, &f);
		else if (f.id == 3)
			n->rows = thrift_number(t, &f);
		else if (f.id == 4)
			n->encoding = thrift_number(t, &f);
		else if (f.id == 5)
			n->levels = thrift_number(t, &f);
		else if (f.id == 6)
			n->repeats = thrift_number(t, &f);
		else if (f.id == 7)
			n->packed = thrift_bool(t, &f);
		else
			thrift_skip(t, f.type);
	}
}

static bool fits_int32(int64_t v)
{
	return v >= 0 && v <= INT32_MAX;
}

int parquet_page_read(const void *data, size_t n, struct parquet_page *out,
		      struct error *err)
{
	struct thrift t = {data, n, 0, false};
	struct thrift_field f = {0, 0};
	struct numbers k = {.levels_encoding = PARQUET_RLE,
			    .repeats_encoding = PARQUET_RLE,
			    .rows = -1};
	int64_t size = -1, stored = -1;

	memset(out, 0, sizeof *out);
	out->type = -1;
	while (thrift_next(&t, &f)) {
		if (f.id == 1) {
			out->type = thrift_number(&t, &f);
		} else if (f.id == 2) {
			size = thrift_number(&t, &f);
		} else if (f.id == 3) {
			stored = thrift_number(&t, &f);
		} else if (f.id == 4) {
			out->has_crc = true;
			out->crc = (uint32_t)thrift_number(&t, &f);
		} else if ((f.id == 5 || f.id == 7) && thrift_struct(&t, &f)) {
			header_read_page(&t, &k);
		} else if (f.id == 8 && thrift_struct(&t, &f)) {
			header_read_page_2(&t, &k);
		} else {
			thrift_skip(&t, f.type);
		}
	}
	if (t.bad || !fits_int32(size) || !fits_int32(stored) ||
	    !fits_int32(k.values) || !fits_int32(k.levels) ||
	    !fits_int32(k.repeats) || !fits_int32(k.nulls) ||
	    k.repeats + k.levels > stored || k.repeats + k.levels > size)
		return page_damaged(err);
	out->header = (uint32_t)t.pos;
	out->size = (uint32_t)size;
	out->stored = (uint32_t)stored;
	out->values = (uint32_t)k.values;
	out->encoding = k.encoding;
	out->levels_encoding = k.levels_encoding;
	out->repeats_encoding = k.repeats_encoding;
	out->repeats = (uint32_t)k.repeats;
	out->levels = (uint32_t)(k.repeats + k.levels);
	out->nulls = (uint32_t)k.nulls;
	out->rows = k.rows;
	out->packed = k.packed;
	return 0;
}

/* ---- dictionaries ------------------------------------------------------------ */

void parquet_dictionary_free(struct parquet_dictionary *d)
{
	free(d->data);
	free(d->at);
	memset(d, 0, sizeof *d);
}

int parquet_dictionary_read(const struct parquet_column *c,
			    const struct parquet_page *p, unsigned char *data,
			    size_t size, struct parquet_dictionary *out,
			    struct error *err)
{
	size_t at = 0;

	memset(out, 0, sizeof *out);
	out->data = data;
	out->n = p->values;
	if (p->encoding != PARQUET_PLAIN &&
	    p->encoding != PARQUET_PLAIN_DICTIONARY)
		return error_set(err, -EBADMSG,
				 "a dictionary page is not in plain encoding");
	if (c->type == PARQUET_BOOLEAN)
		return error_set(err, -EBADMSG,
				 "a column of booleans has a dictionary");
	if (c->width)
		return size / c->width < p->values ? page_damaged(err) : 0;
	if (p->values > size / 4)
		return page_damaged(err);
	out->at = malloc(((size_t)p->values + 1) * sizeof *out->at);
	if (!out->at)
		return error_no_memory(err,
				       "the table of a dictionary's texts");
	for (uint32_t i = 0; i < p->values; i++) {
		uint32_t n;

		if (size - at < 4)
			return page_damaged(err);
		n = load_le32(data + at);
		at += 4;
		if (n > size - at)
			return page_damaged(err);
		out->at[i] = (uint32_t)at;
		at += n;
	}
	return 0;
}

/* ---- values -------------------------------------------------------------------- */

static int values_put_plain(const struct parquet_values *p)
{
	size_t at = 0;

	if (p->c->width) {
		if (p->n / p->c->width < p->values)
			return page_damaged(p->err);
		p->put(p->ctx, p->at, (size_t)p->values * p->c->width);
		return 0;
	}
	for (uint32_t i = 0; i < p->values; i++) {
		uint32_t n;

		if (p->n - at < 4)
			return page_damaged(p->err);
		n = load_le32(p->at + at);
		at += 4;
		if (n > p->n - at)
			return page_damaged(p->err);
		p->put(p->ctx, p->at + at, n);
		at += n;
	}
	return 0;
}

static int values_put_bits(const struct parquet_values *p)
{
	if (p->n < div_up(p->values, 8))
		return page_damaged(p->err);
	for (uint32_t i = 0; i < p->values; i++) {
		unsigned char v = p->at[i / 8] >> i % 8 & 1;

		p->put(p->ctx, &v, 1);
	}
	return 0;
}

/* Hand on booleans in runs; the length of the runs, 4 bytes, is in front of them. */
static int values_put_runs(const struct parquet_values *p)
{
	struct parquet_runs h = {.width = 1};
	uint32_t v;

	if (p->n < 4 || load_le32(p->at) > p->n - 4)
		return page_damaged(p->err);
	h.at = p->at + 4;
	h.end = h.at + load_le32(p->at);
	for (uint32_t i = 0; i < p->values; i++) {
		unsigned char b;

		if (!parquet_runs_next(&h, &v))
			return page_damaged(p->err);
		b = v & 1;
		p->put(p->ctx, &b, 1);
	}
	return 0;
}

static int values_put_indices(const struct parquet_values *p,
			      const struct parquet_dictionary *d)
{
	struct parquet_runs h = {.at = p->at, .end = p->at + p->n};
	uint32_t v;

	if (!p->values)
		return 0;
	if (!d->data || !p->n || *p->at > 32)
		return page_damaged(p->err);
	h.width = *h.at++;
	for (uint32_t i = 0; i < p->values; i++) {
		if (!parquet_runs_next(&h, &v) || v >= d->n)
			return page_damaged(p->err);
		if (p->c->width)
			p->put(p->ctx, d->data + (size_t)v * p->c->width,
			       p->c->width);
		else
			p->put(p->ctx, d->data + d->at[v],
			       load_le32(d->data + d->at[v] - 4));
	}
	return 0;
}

/* Return true if a column of this type may have this encoding. */
static bool encodes(int64_t encoding, int64_t type)
{
	switch (encoding) {
	case PARQUET_DELTA:
		return type == PARQUET_INT32 || type == PARQUET_INT64;
	case PARQUET_DELTA_LENGTHS:
		return type == PARQUET_BYTES;
	case PARQUET_DELTA_BYTES:
		return type == PARQUET_BYTES || type == PARQUET_FIXED;
	case PARQUET_SPLIT:
		return type == PARQUET_INT32 || type == PARQUET_INT64 ||
		       type == PARQUET_FLOAT || type == PARQUET_DOUBLE ||
		       type == PARQUET_FIXED;
	case PARQUET_RLE:
		return type == PARQUET_BOOLEAN;
	default:
		return true;
	}
}

int parquet_values_put(const struct parquet_values *p, int64_t encoding,
		       const struct parquet_dictionary *d)
{
	if (!encodes(encoding, p->c->type))
		return page_damaged(p->err);
	switch (encoding) {
	case PARQUET_PLAIN:
		return p->c->type == PARQUET_BOOLEAN ? values_put_bits(p)
						     : values_put_plain(p);
	case PARQUET_RLE:
		return values_put_runs(p);
	case PARQUET_PLAIN_DICTIONARY:
	case PARQUET_RLE_DICTIONARY:
		return values_put_indices(p, d);
	case PARQUET_DELTA:
		return parquet_put_delta(p);
	case PARQUET_DELTA_LENGTHS:
		return parquet_put_delta_lengths(p);
	case PARQUET_DELTA_BYTES:
		return parquet_put_delta_bytes(p);
	case PARQUET_SPLIT:
		return parquet_put_split(p);
	default:
		return error_set(p->err, -ENOTSUP,
				 "a page's encoding is not supported");
	}
}
