/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the footer of a Parquet file: its columns, and where their chunks are. */
#include "formats/parquet/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/parquet/index.h"
#include "formats/parquet/schema.h"

static int footer_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its footer is damaged");
}

/* ---- row groups ------------------------------------------------------------ */

struct place {
	int64_t type, codec, values, size, data, dictionary, nulls;
	bool other_encoding, other_file;
};

static void read_encodings(struct thrift *t, const struct thrift_field *f,
			   struct place *p)
{
	struct thrift_field e = {0, 0};

	for (uint32_t n = thrift_list(t, f, &e.type); n && !t->bad; n--) {
		int64_t v = thrift_number(t, &e);

		p->other_encoding |= v < PARQUET_PLAIN || v > PARQUET_SPLIT;
	}
}

static void read_statistics(struct thrift *t, struct place *p)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 3)
			p->nulls = thrift_number(t, &f);
		else
			thrift_skip(t, f.type);
	}
}

static void read_place(struct thrift *t, struct place *p)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			p->type = thrift_number(t, &f);
		else if (f.id == 2)
			read_encodings(t, &f, p);
		else if (f.id == 4)
			p->codec = thrift_number(t, &f);
		else if (f.id == 5)
			p->values = thrift_number(t, &f);
		else if (f.id == 7)
			p->size = thrift_number(t, &f);
		else if (f.id == 9)
			p->data = thrift_number(t, &f);
		else if (f.id == 11)
			p->dictionary = thrift_number(t, &f);
		else if (f.id == 12 && thrift_struct(t, &f))
			read_statistics(t, p);
		else
			thrift_skip(t, f.type);
	}
}

static void read_chunk(struct thrift *t, struct place *p)
{
	struct thrift_field f = {0, 0};

	memset(p, 0, sizeof *p);
	p->type = -1;
	while (thrift_next(t, &f)) {
		/* file_path, crypto_metadata: in another file, or encrypted. */
		if (f.id == 1 || f.id == 8)
			p->other_file = true;
		if (f.id == 3 && thrift_struct(t, &f))
			read_place(t, p);
		else
			thrift_skip(t, f.type);
	}
}

static const char *place_why_not(const struct place *p)
{
	if (p->other_file)
		return "its values are in another file, or encrypted";
	if (p->other_encoding)
		return "its values have an encoding that tensorfs does not "
		       "know: write them plain or with a dictionary";
	return NULL;
}

static int column_add_chunk(struct parquet_column *c, const struct place *p,
			    uint64_t file, struct error *err)
{
	int64_t pos = p->dictionary > 0 && p->dictionary < p->data
			      ? p->dictionary
			      : p->data;
	struct parquet_chunk *k;

	if (p->type != c->type || p->values < 0 || pos < 4 || p->size < 0 ||
	    (uint64_t)pos > file || (uint64_t)p->size > file - (uint64_t)pos)
		return error_set(err, -EBADMSG,
				 "\"%.80s\": its pages are not inside of the "
				 "file: truncated?",
				 c->name);
	k = realloc(c->chunks, ((size_t)c->n_chunks + 1) * sizeof *k);
	if (!k)
		return error_no_memory(err,
				       "the table of a column's row groups");
	c->chunks = k;
	k += c->n_chunks;
	k->rows = k->values = (uint64_t)p->values;
	k->pos = (uint64_t)pos;
	k->size = (uint64_t)p->size;
	k->codec = p->codec;
	atomic_init(&k->index, NULL);
	c->n_chunks++;
	return 0;
}

static int group_read_columns(struct thrift *t, const struct thrift_field *f,
			      struct parquet_meta *m, uint64_t file,
			      struct error *err)
{
	uint32_t n = thrift_structs(t, f);
	int r = 0;

	if (n != m->n)
		return footer_damaged(err);
	for (uint32_t i = 0; r == 0 && i < n && !t->bad; i++) {
		struct parquet_column *c = &m->at[i];
		struct place p;

		read_chunk(t, &p);
		if (!c->why_not)
			c->why_not = place_why_not(&p);
		c->nulls |= p.nulls > 0;
		if (!c->why_not && !t->bad && p.values)
			r = column_add_chunk(c, &p, file, err);
	}
	return r;
}

/* A list column has one or more values for each row; only the row group counts its rows.
 * Returns false if that contradicts the column. */
static bool set_list_rows(struct parquet_meta *m, uint64_t rows)
{
	for (uint32_t i = 0; i < m->n; i++) {
		struct parquet_column *c = &m->at[i];
		struct parquet_chunk *k;

		if (c->why_not ||
		    (c->dtype.kind != DTYPE_RAGGED && !c->max_repeats))
			continue;
		if (c->n_chunks != m->groups)
			return false;
		if (!rows)
			continue;
		k = &c->chunks[c->n_chunks - 1];
		if (k->values < rows)
			return false;
		k->rows = rows;
	}
	return true;
}

static int meta_read_group(struct thrift *t, struct parquet_meta *m,
			   uint64_t file, struct error *err)
{
	struct thrift_field f = {0, 0};
	int64_t rows = -1;
	bool columns = false;
	int r = 0;

	while (r == 0 && thrift_next(t, &f)) {
		if (f.id == 1 && !columns) {
			columns = true;
			r = group_read_columns(t, &f, m, file, err);
		} else if (f.id == 3) {
			rows = thrift_number(t, &f);
		} else {
			thrift_skip(t, f.type);
		}
	}
	if (r < 0)
		return r;
	if (t->bad || !columns || rows < 0 ||
	    add_overflows(m->rows, (uint64_t)rows, &m->rows))
		return footer_damaged(err);
	m->groups += rows > 0;
	if (!set_list_rows(m, (uint64_t)rows))
		return footer_damaged(err);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct parquet_column *c = &m->at[i];

		/* All columns need a chunk for each row group: those of one record are
		 * read chunk by chunk. */
		if (!c->why_not && (c->n_chunks != m->groups ||
				    (rows && c->chunks[c->n_chunks - 1].rows !=
						     (uint64_t)rows)))
			return error_set(err, -EBADMSG,
					 "\"%.80s\": its number of values "
					 "contradicts the number of rows",
					 c->name);
	}
	return 0;
}

/* Check that each column has the rows of all row groups. */
static int meta_check_rows(const struct parquet_meta *m, struct error *err)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct parquet_column *c = &m->at[i];
		uint64_t rows = 0;

		for (uint32_t k = 0; k < c->n_chunks; k++)
			if (add_overflows(rows, c->chunks[k].rows, &rows))
				return footer_damaged(err);
		if (!c->why_not && rows != m->rows)
			return footer_damaged(err);
	}
	return 0;
}

/* ---- the footer -------------------------------------------------------------- */

static bool read_pair(struct thrift *t, json_t *o)
{
	struct thrift_field f = {0, 0};
	const char *key = "", *value = "";
	size_t key_len = 0, len = 0;
	json_t *name;
	bool ok;

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			key = thrift_text(t, &f, &key_len);
		else if (f.id == 2)
			value = thrift_text(t, &f, &len);
		else
			thrift_skip(t, f.type);
	}
	name = json_text(key, key_len);
	ok = name && !json_object_set_new(o, json_string_value(name),
					  json_text(value, len));
	json_decref(name);
	return ok;
}

static int meta_read_footer(struct thrift *t, struct parquet_meta *m,
			    uint64_t file, struct error *err)
{
	struct thrift_field f = {0, 0};
	int64_t rows = -1;
	int r = 0;

	while (r == 0 && thrift_next(t, &f)) {
		if (f.id == 2) {
			r = parquet_schema_read(t, &f, m, err);
		} else if (f.id == 3) {
			rows = thrift_number(t, &f);
		} else if (f.id == 4) {
			for (uint32_t n = thrift_structs(t, &f);
			     r == 0 && n && !t->bad; n--)
				r = meta_read_group(t, m, file, err);
		} else if (f.id == 5) {
			for (uint32_t n = thrift_structs(t, &f);
			     r == 0 && n && !t->bad; n--)
				if (!read_pair(t, m->attributes))
					r = error_no_memory(
						err,
						"the attributes of the file");
		} else {
			thrift_skip(t, f.type);
		}
	}
	if (r < 0)
		return r;
	/* Some writers leave the number of rows 0; then the row groups and columns
	 * count. */
	return t->bad || rows < 0 || (rows && (uint64_t)rows != m->rows)
		       ? footer_damaged(err)
		       : meta_check_rows(m, err);
}

int parquet_meta_read(const void *data, size_t n, uint64_t file,
		      struct parquet_meta *out, struct error *err)
{
	struct thrift t = {data, n, 0, false};
	int r;

	memset(out, 0, sizeof *out);
	out->attributes = json_object();
	r = out->attributes
		    ? meta_read_footer(&t, out, file, err)
		    : error_no_memory(err, "the attributes of the file");
	if (r < 0)
		parquet_meta_free(out);
	return r;
}

uint64_t parquet_column_mean(const struct parquet_column *c)
{
	uint64_t mean = 0;

	for (uint32_t i = 0; i < c->n_chunks; i++)
		mean = max_u64(mean,
			       div_up(c->chunks[i].size, c->chunks[i].rows));
	return mean;
}

void parquet_meta_free(struct parquet_meta *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		free(m->at[i].name);
		for (uint32_t k = 0; k < m->at[i].n_chunks; k++)
			parquet_index_free(m->at[i].chunks[k].index);
		free(m->at[i].chunks);
	}
	free(m->at);
	parquet_tree_free(m);
	json_decref(m->attributes);
	memset(m, 0, sizeof *m);
}
