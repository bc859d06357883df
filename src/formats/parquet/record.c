/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of a Parquet file that are not arrays: each row is a line of JSON. */
#include "formats/parquet/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

/* Most bytes handed on for one request. */
#define HANDED_MOST (UINT64_C(1) << 30)

struct record {
	const struct parquet_meta *meta;
	const struct parquet_node *node;
	char what[96]; /* what a row is, in words */
	char note[192];
};

static const struct parquet_column *record_first_column(const struct record *r)
{
	return &r->meta->at[r->node->leaf];
}

static void record_part_layout(const struct arrays *s, const struct record *r,
			       uint32_t part, struct array_layout *out)
{
	out->kind = ARRAY_MADE;
	out->maker = "tensorfs: from Parquet pages";
	out->file = s->file;
	out->shape[0] = out->chunk[0] =
		record_first_column(r)->chunks[part].rows;
}

static int record_learn(struct array *a, uint32_t part,
			struct array_layout *out, struct error *err)
{
	(void)err;
	record_part_layout(a->source, a->own, part, out);
	out->stored = a->t.dtype;
	return 0;
}

static int record_hand_rows(const struct record *r, struct parquet_rows *rows,
			    uint64_t n,
			    void (*put)(void *ctx, const char *s, size_t len),
			    void *ctx, struct error *err)
{
	struct jsonline line = {NULL, 0, 0, false, false};
	uint64_t left = HANDED_MOST;
	int e = 0;

	for (uint64_t i = 0; e == 0 && i < n; i++) {
		line.n = 0;
		e = parquet_rows_put(r->meta, r->node, rows, &line, err);
		if (e == 0)
			e = jsonline_check(&line, err);
		if (e == 0 && line.n > left)
			e = error_set(err, -ENOTSUP,
				      "these rows have more than 1 GiB "
				      "together: read fewer rows at once");
		if (e < 0)
			break;
		left -= line.n;
		put(ctx, line.at, line.n);
	}
	jsonline_free(&line);
	return e;
}

static int record_hand_values(struct array *a, uint32_t part,
			      const struct box *b,
			      void (*put)(void *ctx, const char *s, size_t len),
			      void *ctx, struct error *err)
{
	const struct record *r = a->own;
	uint32_t n = r->node->leaves;
	struct parquet_rows *rows = calloc(n, sizeof *rows);
	int e = rows ? 0 : error_no_memory(err, "the rows of a column");

	for (uint32_t i = 0; e == 0 && i < n; i++)
		e = parquet_rows_load(a->source, record_first_column(r) + i,
				      part, b->start[0], b->count[0], &rows[i],
				      err);
	if (e == 0)
		e = record_hand_rows(r, rows, b->count[0], put, ctx, err);
	for (uint32_t i = 0; rows && i < n; i++)
		parquet_rows_free(&rows[i]);
	free(rows);
	return e;
}

static bool record_has_checksum(struct array *a, uint32_t part)
{
	const struct record *r = a->own;
	bool all = true;

	for (uint32_t i = 0; all && i < r->node->leaves; i++)
		all = parquet_has_checksum(a->source,
					   record_first_column(r) + i, part);
	return all;
}

static json_t *record_attributes(const struct array *a)
{
	const struct record *r = a->own;

	return json_deep_copy(r->meta->attributes);
}

static void record_free(struct array *a)
{
	free(a->own);
}

static const struct array_ops record_ops = {.learn = record_learn,
					    .values = record_hand_values,
					    .has_checksum = record_has_checksum,
					    .attributes = record_attributes,
					    .free = record_free};

static uint64_t record_mean(const struct record *r)
{
	uint64_t mean = 0;

	for (uint32_t i = 0; i < r->node->leaves; i++)
		mean += 2 * parquet_column_mean(record_first_column(r) + i);
	return mean;
}

/* Note that the column would be an array if it had no nulls. */
static void record_note_nulls(struct record *r, const struct parquet_column *c)
{
	strcat(r->what, " or null");
	snprintf(r->note, sizeof r->note,
		 "%s%svalues are missing in it (nulls), so each row is a line "
		 "of JSON: null if it is missing",
		 c->note, *c->note ? "; " : "");
}

int parquet_record_new(struct arrays *s, struct parquet_meta *meta,
		       const struct parquet_node *n, struct array **out,
		       struct error *err)
{
	struct parquet_column *c = &meta->at[n->leaf];
	cleanup_free struct array_part *parts = NULL;
	struct array_layout l = {.kind = ARRAY_ABSENT};
	struct array_spec spec = {.rank = 1, .ops = &record_ops};
	struct record *r = calloc(1, sizeof *r);
	bool nulls;

	if (!r)
		return error_no_memory(err, "the record of a column");
	*r = (struct record){meta, n, "", ""};
	parquet_describe(meta, n, r->what, sizeof r->what - 8);
	nulls = n->leaves == 1 && c->nulls && !c->nested;
	for (uint32_t i = 0; i < n->leaves; i++) {
		c[i].nested = true;
		/* The note describes the integer, which is not shown. */
		if (c[i].decimal)
			*c[i].note = '\0';
	}
	if (nulls)
		record_note_nulls(r, c);
	spec.own = r;
	spec.name = c->name;
	spec.note = *r->note                     ? r->note
		    : n->leaves == 1 && *c->note ? c->note
						 : NULL;
	spec.shape[0] = meta->rows;
	spec.stored.kind = DTYPE_TEXT;
	spec.stored.size = 8;
	spec.stored.vlen = true;
	spec.stored.text = r->what;
	spec.text_bytes = c->n_chunks ? record_mean(r) : 0;
	l.stored = spec.stored;
	l.file = s->file;
	spec.layout = &l;
	if (c->n_chunks == 1) {
		record_part_layout(s, r, 0, &l);
		l.stored = spec.stored;
	} else if (c->n_chunks) {
		parts = calloc(c->n_chunks, sizeof *parts);
		if (!parts) {
			free(r);
			return error_no_memory(
				err, "the table of a column's row groups");
		}
		for (uint32_t i = 0; i < c->n_chunks; i++)
			parts[i] = (struct array_part){s->file, c->name,
						       c->chunks[i].rows};
		spec.layout = NULL;
		spec.parts = parts;
		spec.nparts = c->n_chunks;
	}
	return array_new(s, &spec, out, err);
}
