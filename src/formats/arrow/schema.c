/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads an Arrow schema: which columns are tensors, and their part of a batch. */
#include "formats/arrow/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/arrow/type.h"

#define VERSION_4 3 /* numbers of enum MetadataVersion in Schema.fbs */
#define VERSION_5 4
#define DEPTH_MAX 64
/* Columns may share text in the file; copied for each column, it may take SHARED_MAX
 * times the bytes of the schema, and SHARED_ROOM bytes more. */
#define SHARED_MAX 16
#define SHARED_ROOM (UINT64_C(1) << 20)

struct reader {
	struct arrow_schema *s;
	/* nodes, buffers and views in front of the field read next. */
	struct arrow_counts *at;
	int64_t version;
	uint64_t left; /* how many fields may still follow */
	/* How many bytes of names and attributes may still follow. */
	uint64_t bytes;
	struct error *err;
};

static int schema_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its schema is damaged");
}

/* ---- how much of a batch a field takes ------------------------------------ */

/* Count the nodes, buffers and views of a field and of the fields in it. */
static int schema_count_field(struct reader *r, const struct flat_table *field,
			      unsigned depth)
{
	uint64_t type = flat_unsigned(field, 2, 1, 0);
	struct flat_table of = flat_child(field, 3);
	struct flat_vector children = flat_list(field, 5, 4);

	if (!r->left-- || depth > DEPTH_MAX || !field->pos)
		return schema_damaged(r->err);
	if (!type || type >= T_KNOWN)
		return error_set(r->err, -ENOTSUP,
				 "it has a column of type %u of Arrow, which "
				 "this version of tensorfs does not know",
				 (unsigned)type);
	r->at->nodes++;
	if (arrow_is_dictionary(field)) {
		/* numbers; the values are in dictionary batches. */
		r->at->buffers += 2;
		return 0;
	}
	r->at->buffers += arrow_buffers_of(type, &of, r->version, r->at);
	for (uint32_t i = 0; i < children.n; i++) {
		struct flat_table child = flat_element(&children, i);
		int e = schema_count_field(r, &child, depth + 1);

		if (e < 0)
			return e;
	}
	return 0;
}

/* ---- columns -------------------------------------------------------------- */

static bool field_is_called(const struct flat_vector *children, uint32_t i,
			    const char *name)
{
	struct flat_table child = flat_element(children, i);
	size_t len;
	const char *is = flat_text(&child, 0, &len);

	return is && len == strlen(name) && !memcmp(is, name, len);
}

/*
 * Hugging Face datasets store a file as a structure {bytes, path}.  If the field is one,
 * set the column to the member with the bytes, and *at to that member; the nodes and
 * buffers in front of it in a batch are counted.
 */
static void enter_file(struct reader *r, struct arrow_column *c,
		       struct flat_table *at)
{
	struct flat_vector children = flat_list(at, 5, 4);
	struct arrow_counts before = {c->node + 1, c->buffer + 1, 0};
	struct reader counting = {.at = &before,
				  .version = r->version,
				  .left = UINT64_MAX,
				  .err = r->err};

	for (uint32_t i = 0; i < children.n && children.n == 2; i++) {
		struct flat_table child = flat_element(&children, i);
		uint64_t type = flat_unsigned(&child, 2, 1, 0);

		if (field_is_called(&children, i, "bytes") &&
		    field_is_called(&children, 1 - i, "path") &&
		    (type == T_BINARY || type == T_LARGE_BINARY)) {
			c->inside = true;
			c->outer_node = c->node;
			c->outer = c->buffer;
			c->node = before.nodes;
			c->buffer = before.buffers;
			*at = child;
			return;
		}
		if (schema_count_field(&counting, &child, 0) < 0 ||
		    before.views)
			return;
	}
}

/* Read a field that may be lists of fixed size, of any depth, down to the type of their
 * items. */
static int schema_read_field(struct reader *r, struct arrow_column *c,
			     const struct flat_table *field, struct error *err)
{
	struct flat_table at = *field;
	uint64_t type = flat_unsigned(&at, 2, 1, 0);
	struct flat_table of = flat_child(&at, 3);

	for (; type == T_FIXED_LIST && !arrow_is_dictionary(&at); c->buffer++) {
		struct flat_vector children = flat_list(&at, 5, 4);
		int64_t n = flat_signed(&of, 0, 4, 0);

		if (children.n != 1 || n < 0)
			return schema_damaged(err);
		if (c->rank == RANK_MAX - 1)
			return arrow_not_shown(c, "it has more than 32 axes");
		if (mul_overflows(c->per_row, (uint64_t)n, &c->per_row))
			return arrow_not_shown(c, "its rows are too large");
		c->lists[c->rank] = (uint64_t)n;
		c->shape[c->rank++] = (uint64_t)n;
		at = flat_element(&children, 0);
		type = flat_unsigned(&at, 2, 1, 0);
		of = flat_child(&at, 3);
		c->nodes++;
	}
	if (type == T_STRUCT && !c->rank && !arrow_is_dictionary(&at)) {
		enter_file(r, c, &at);
		type = flat_unsigned(&at, 2, 1, 0);
		of = flat_child(&at, 3);
	}
	if (arrow_type_read(c, &at, type, &of) < 0)
		return error_no_memory(err, "the note on a column's type");
	if (arrow_varies(c) && c->rank)
		return arrow_not_shown(c,
				       "lists of strings or of lists are not "
				       "supported");
	return 0;
}

static const char *column_attribute(const struct arrow_column *c,
				    const char *key)
{
	const char *v = json_string_value(json_object_get(c->attributes, key));

	return v ? v : "";
}

/* The extension type arrow.fixed_shape_tensor: give a list of fixed size the axes that
 * its metadata name, if their order in memory is not permuted. */
static void read_tensor_shape(struct arrow_column *c)
{
	json_t *o = json_loads(column_attribute(c, "ARROW:extension:metadata"),
			       JSON_REJECT_DUPLICATES, NULL);
	const json_t *shape = json_object_get(o, "shape");
	const json_t *order = json_object_get(o, "permutation");
	size_t n = json_array_size(shape);
	uint64_t elements = 1;
	bool ok = n > 0 && n < RANK_MAX && c->rank == 1;

	for (size_t i = 0; ok && i < n; i++) {
		json_int_t d = json_integer_value(json_array_get(shape, i));

		ok = d >= 0 && json_is_integer(json_array_get(shape, i)) &&
		     !mul_overflows(elements, (uint64_t)d, &elements);
	}
	for (size_t i = 0; ok && i < json_array_size(order); i++)
		ok = json_integer_value(json_array_get(order, i)) ==
		     (json_int_t)i;
	if (ok && elements == c->per_row) {
		c->rank = (unsigned)n;
		for (size_t i = 0; i < n; i++)
			c->shape[i] = (uint64_t)json_integer_value(
				json_array_get(shape, i));
	}
	json_decref(o);
}

static bool schema_spend(struct reader *r, uint64_t bytes)
{
	if (bytes > r->bytes)
		return false;
	r->bytes -= bytes;
	return true;
}

static int read_attributes(struct reader *r, struct arrow_column *c,
			   const struct flat_table *field)
{
	struct flat_vector list = flat_list(field, 6, 4);

	c->attributes = json_object();
	if (!c->attributes)
		return error_no_memory(r->err, "the attributes of a column");
	for (uint32_t i = 0; i < list.n; i++) {
		struct flat_table pair = flat_element(&list, i);
		size_t key_len, len;
		const char *key = flat_text(&pair, 0, &key_len);
		const char *value = flat_text(&pair, 1, &len);
		json_t *name;
		int failed;

		if (!schema_spend(r, 16 + key_len + len))
			return schema_damaged(r->err);
		name = json_text(key ? key : "", key_len);
		if (!name)
			return error_no_memory(r->err,
					       "the attributes of a column");
		failed = json_object_set_new(
			c->attributes, json_string_value(name),
			json_text(value ? value : "", len));
		json_decref(name);
		if (failed)
			return error_no_memory(r->err,
					       "the attributes of a column");
	}
	return 0;
}

/* Read the type of the rows, even if the column will not be shown by its cells. */
static int schema_read_cell(struct reader *r, struct arrow_column *c,
			    const struct flat_table *field)
{
	struct arrow_counts at = {c->node, c->buffer, c->views};
	struct arrow_cell_limits left = {r->left, r->bytes, r->version};
	int e = arrow_cell_read(&c->cell, field, &at, &left, &c->cell_why);

	if (e == -ENOMEM)
		return error_no_memory(r->err, "the type of a column");
	if (e < 0)
		return schema_damaged(r->err);
	r->left = left.fields;
	r->bytes = left.bytes;
	return 0;
}

static int schema_read_column(struct reader *r, struct arrow_column *c,
			      const struct flat_table *field)
{
	size_t len;
	const char *name = flat_text(field, 0, &len);
	int e;

	c->node = r->at->nodes;
	c->buffer = r->at->buffers;
	c->views = r->at->views;
	c->nodes = c->per_row = 1;
	e = schema_count_field(r, field, 0);
	if (e < 0)
		return e;
	c->all = (struct arrow_counts){r->at->nodes - c->node,
				       r->at->buffers - c->buffer,
				       r->at->views - c->views};
	if (!schema_spend(r, len))
		return schema_damaged(r->err);
	c->name = strndup(name ? name : "", len);
	if (!c->name)
		return error_no_memory(r->err, "the name of a column");
	e = schema_read_cell(r, c, field);
	if (e == 0)
		e = read_attributes(r, c, field);
	if (e == 0)
		e = schema_read_field(r, c, field, r->err);
	if (e == 0 && c->kind == ARROW_NOT)
		arrow_column_as_cells(c, false);
	if (e == 0 && !strcmp(column_attribute(c, "ARROW:extension:name"),
			      "arrow.fixed_shape_tensor"))
		read_tensor_shape(c);
	return e;
}

static int schema_read_columns(struct reader *r, const struct flat_table *t)
{
	struct flat_vector fields = flat_list(t, 1, 4);

	r->s->at = calloc(fields.n ? fields.n : 1, sizeof *r->s->at);
	if (!r->s->at)
		return error_no_memory(r->err, "the table of columns");
	for (uint32_t i = 0; i < fields.n; i++) {
		struct flat_table field = flat_element(&fields, i);
		int e;

		r->s->n = i + 1;
		e = schema_read_column(r, &r->s->at[i], &field);
		if (e < 0)
			return e;
	}
	return t->in->bad ? schema_damaged(r->err) : 0;
}

int arrow_schema_read(const struct flat_table *t, int64_t version,
		      struct arrow_schema *out, struct error *err)
{
	struct reader r = {out,
			   &out->all,
			   version,
			   t->in->n / 4,
			   SHARED_MAX * (uint64_t)t->in->n + SHARED_ROOM,
			   err};
	int e;

	memset(out, 0, sizeof *out);
	/* The layout of messages has changed since. */
	if (version < VERSION_4)
		return error_set(err, -ENOTSUP,
				 "it was written by Arrow before 0.8 (its "
				 "metadata are of version %lld), which is not "
				 "supported: write it again with a newer one",
				 (long long)version + 1);
	if (version > VERSION_5)
		return error_set(err, -ENOTSUP,
				 "its metadata are of version %lld of Arrow "
				 "IPC; supported are versions 4 and 5",
				 (long long)version + 1);
	if (flat_signed(t, 0, 2, 0) != 0)
		return error_set(err, -ENOTSUP,
				 "its numbers are big-endian, which is not "
				 "supported");
	e = schema_read_columns(&r, t);
	if (e < 0)
		arrow_schema_free(out);
	return e;
}

void arrow_schema_free(struct arrow_schema *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		free(s->at[i].name);
		free(s->at[i].note);
		arrow_cell_done(&s->at[i].cell);
		json_decref(s->at[i].attributes);
	}
	free(s->at);
	memset(s, 0, sizeof *s);
}
