/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads Arrow columns whose rows vary in length: strings, blobs, lists. */
/*
 * A row's bytes are between two offsets.  A null row has no bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/arrow/private.h"

/* A compressed buffer with more bytes is not decoded only to see how values begin. */
#define COSTLY (UINT64_C(32) << 20)

/* Rows [first, first + n) of a part. */
struct rows {
	const struct arrays *s;
	const struct arrow_column *column;
	const struct arrow_part *part;
	unsigned char *offsets, *data, *valid[2];
	uint64_t bit;  /* the first row's bit in `valid` */
	uint64_t base; /* the offset of the first item in `data` */
};

static void rows_free(struct rows *r)
{
	free(r->offsets);
	free(r->data);
	free(r->valid[0]);
	free(r->valid[1]);
}

/* Bytes of one item, which offsets count. */
static uint64_t values_item_size(const struct arrow_column *c)
{
	return c->kind == ARROW_LISTS ? c->item.type.size : 1;
}

static uint64_t offset_at(const struct rows *r, uint64_t i)
{
	return r->column->wide ? load_le64(r->offsets + 8 * i)
			       : load_le32(r->offsets + 4 * i);
}

static bool value_is_null(const struct rows *r, uint64_t i)
{
	i += r->bit;
	for (unsigned k = 0; k < 2; k++)
		if (r->valid[k] && !(r->valid[k][i / 8] >> i % 8 & 1))
			return true;
	return false;
}

static int check_offsets(const struct rows *r, uint64_t n, uint64_t most,
			 struct error *err)
{
	for (uint64_t i = 0; i < n; i++)
		if (offset_at(r, i) > offset_at(r, i + 1))
			return error_set(err, -EBADMSG,
					 "the offsets of its rows do not "
					 "ascend: damaged?");
	if (offset_at(r, n) > most)
		return error_set(err, -EBADMSG,
				 "a value ends behind the end of its batch");
	return 0;
}

/* Set *out (malloc'ed) to the decoded bytes [from, from + n) of a buffer; b->least and
 * b->most are the limits of the whole buffer's size. */
static int read_some(const struct rows *r, struct arrow_buffer *b,
		     uint64_t from, uint64_t n, unsigned char **out,
		     struct error *err)
{
	b->s = r->s;
	b->codec = r->part->codec;
	if (b->codec && n)
		return arrow_buffer_part(b, from, n, out, NULL, err);
	*out = malloc(n ? n : 1);
	if (!*out)
		return error_no_memory(err, "the values of rows");
	return arrays_read(r->s, b->pos + from, *out, n, err);
}

/* Read the offsets and validity bits of rows [first, first + n). */
static int values_read_offsets(struct rows *r, uint64_t first, uint64_t n,
			       struct error *err)
{
	const struct arrow_piece *p = &r->part->piece;
	unsigned width = r->column->wide ? 8 : 4;
	uint64_t all = (p->rows + 1) * width, bits = div_up(p->rows, 8);
	struct arrow_buffer b = {.pos = p->offsets,
				 .size = p->offsets_size,
				 .least = all,
				 .most = all + ARROW_PADDING};
	int e = read_some(r, &b, first * width, (n + 1) * width, &r->offsets,
			  err);

	r->bit = first % 8;
	for (unsigned k = 0; e == 0 && k < 2; k++) {
		if (!p->valid[k].size)
			continue;
		b = (struct arrow_buffer){.pos = p->valid[k].pos,
					  .size = p->valid[k].size,
					  .least = bits,
					  .most = bits + ARROW_PADDING};
		e = read_some(r, &b, first / 8, div_up(r->bit + n, 8),
			      &r->valid[k], err);
	}
	return e;
}

/* Read the items between the first and the last of the `n` rows' offsets. */
static int values_read_data(struct rows *r, uint64_t n, struct error *err)
{
	const struct arrow_piece *p = &r->part->piece;
	struct arrow_buffer b = {.s = r->s,
				 .codec = r->part->codec,
				 .pos = p->pos,
				 .size = p->size,
				 .most = ARROW_VALUES_MOST};
	uint64_t unit = values_item_size(r->column), most = p->size;
	bool plain;
	int e = 0;

	/* If all values are empty, the buffer may lack even the prefix. */
	if (b.codec && b.size < ARROW_PREFIX)
		most = 0;
	else if (b.codec)
		e = arrow_buffer_size(&b, &most, &plain, err);
	if (e == 0)
		e = check_offsets(r, n, most / unit, err);
	if (e < 0)
		return e;
	r->base = offset_at(r, 0);
	return read_some(r, &b, r->base * unit,
			 (offset_at(r, n) - r->base) * unit, &r->data, err);
}

/* ---- operations ------------------------------------------------------------ */

static void values_init_rows(struct rows *r, const struct array *a,
			     uint32_t part)
{
	const struct arrow_own *own = a->own;

	memset(r, 0, sizeof *r);
	r->s = a->source;
	r->column = own->column;
	r->part = &own->parts.at[part];
}

static int arrow_values_hand(struct array *a, uint32_t part,
			     const struct box *b,
			     void (*put)(void *ctx, const char *s, size_t len),
			     void *ctx, struct error *err)
{
	uint64_t n = b->count[0], unit;
	struct rows r;
	int e;

	values_init_rows(&r, a, part);
	unit = values_item_size(r.column);
	e = values_read_offsets(&r, b->start[0], n, err);
	if (e == 0)
		e = values_read_data(&r, n, err);
	for (uint64_t i = 0; e == 0 && i < n; i++) {
		uint64_t from = offset_at(&r, i), to = offset_at(&r, i + 1);

		if (value_is_null(&r, i))
			put(ctx, "", 0);
		else
			put(ctx, (char *)r.data + (from - r.base) * unit,
			    (to - from) * unit);
	}
	rows_free(&r);
	return e;
}

static int arrow_values_length(struct array *a, uint32_t part,
			       const struct box *b, uint64_t *bytes,
			       struct error *err)
{
	struct rows r;
	int e;

	values_init_rows(&r, a, part);
	if (r.part->codec)
		return 0;
	e = values_read_offsets(&r, b->start[0], 1, err);
	if (e == 0)
		e = check_offsets(
			&r, 1, r.part->piece.size / values_item_size(r.column),
			err);
	if (e == 0)
		*bytes = value_is_null(&r, 0)
				 ? 0
				 : (offset_at(&r, 1) - offset_at(&r, 0)) *
					   values_item_size(r.column);
	rows_free(&r);
	return e < 0 ? e : 1;
}

/* Such a column has no chunks; the layout only tells how it is stored. */
static int arrow_values_learn(struct array *a, uint32_t part,
			      struct array_layout *out, struct error *err)
{
	const struct arrow_own *own = a->own;

	(void)err;
	out->kind = ARRAY_MADE;
	out->maker = "tensorfs: from offsets";
	out->file = a->source->file;
	out->stored = own->column->dtype;
	out->shape[0] = out->chunk[0] = own->parts.at[part].piece.rows;
	return 0;
}

const struct array_ops arrow_values_ops = {
	.learn = arrow_values_learn,
	.values = arrow_values_hand,
	.length = arrow_values_length,
	.attributes = arrow_own_attributes,
	.free = arrow_own_done,
};

uint64_t arrow_values_mean(const struct arrow_own *own)
{
	uint64_t mean = 0;

	for (size_t i = 0; i < own->parts.n; i++) {
		const struct arrow_part *p = &own->parts.at[i];

		/* Compressed parts are decoded whole and do not count: larger requests
		 * suit them. */
		if (!p->codec)
			mean = max_u64(mean,
				       div_up(p->piece.size, p->piece.rows));
	}
	return mean;
}

bool arrow_values_costly(const struct array *a)
{
	const struct arrow_own *own = a->own;

	return own->parts.n && own->parts.at[0].codec &&
	       own->parts.at[0].piece.size > COSTLY;
}
