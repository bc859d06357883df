/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of an Arrow IPC file: which are tensors, and where in a batch they are. */
#include "source/arrow_schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* Types as the union Type of Schema.fbs numbers them. */
enum {
	T_NULL = 1,
	T_INT,
	T_FLOAT,
	T_BINARY,
	T_UTF8,
	T_BOOL,
	T_DECIMAL,
	T_DATE,
	T_TIME,
	T_TIMESTAMP,
	T_INTERVAL,
	T_LIST,
	T_STRUCT,
	T_UNION,
	T_FIXED_BINARY,
	T_FIXED_LIST,
	T_MAP,
	T_DURATION,
	T_LARGE_BINARY,
	T_LARGE_UTF8,
	T_LARGE_LIST,
	T_RUNS,
	T_BINARY_VIEW,
	T_UTF8_VIEW,
	T_LIST_VIEW,
	T_LARGE_LIST_VIEW,
	T_KNOWN /* those from here on are newer than this */
};
#define VERSION_4 3 /* as MetadataVersion numbers them */
#define VERSION_5 4
#define DEPTH_MAX 64
/* Columns may share text, as often as to be so many times as long as it is stored. */
#define SHARED_MAX 16
#define SHARED_ROOM (UINT64_C(1) << 20)

struct reader {
	struct arrow_schema *s;
	int64_t version;
	uint64_t left;  /* fields that there may be still */
	uint64_t bytes; /* of names and attributes that there may be still */
	struct error *err;
};

static int damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its schema is damaged");
}

/* ---- how much of a batch a field takes ------------------------------------ */

/* Buffers of a field itself. */
static unsigned buffers_of(struct reader *r, uint64_t type,
			   const struct flat_table *of)
{
	switch (type) {
	case T_NULL:
	case T_RUNS:
		return 0;
	case T_STRUCT:
	case T_FIXED_LIST:
		return 1;
	case T_UNION: /* mode 1: dense; version 4 has a validity, too */
		return (flat_signed(of, 0, 2, 0) == 1 ? 2 : 1) +
		       (r->version == VERSION_4);
	case T_BINARY:
	case T_UTF8:
	case T_LARGE_BINARY:
	case T_LARGE_UTF8:
	case T_LIST_VIEW:
	case T_LARGE_LIST_VIEW:
		return 3;
	case T_BINARY_VIEW:
	case T_UTF8_VIEW:
		r->s->views++;
		return 2;
	default:
		return 2;
	}
}

static bool is_dictionary(const struct flat_table *field)
{
	return flat_child(field, 4).pos;
}

/* Count the nodes and buffers of a field and of what is in it. */
static int count(struct reader *r, const struct flat_table *field,
		 unsigned depth)
{
	uint64_t type = flat_unsigned(field, 2, 1, 0);
	struct flat_table of = flat_child(field, 3);
	struct flat_vector children = flat_list(field, 5, 4);

	if (!r->left-- || depth > DEPTH_MAX || !field->pos)
		return damaged(r->err);
	if (!type || type >= T_KNOWN)
		return error_set(r->err, -ENOTSUP,
				 "it has a column of type %u, which is not "
				 "known here",
				 (unsigned)type);
	r->s->nodes++;
	if (is_dictionary(field)) { /* numbers; the values are elsewhere */
		r->s->buffers += 2;
		return 0;
	}
	r->s->buffers += buffers_of(r, type, &of);
	for (uint32_t i = 0; i < children.n; i++) {
		struct flat_table child = flat_element(&children, i);
		int e = count(r, &child, depth + 1);

		if (e < 0)
			return e;
	}
	return 0;
}

/* ---- types ---------------------------------------------------------------- */

static int not_shown(struct arrow_column *c, const char *why)
{
	c->kind = ARROW_NOT;
	c->why_not = why;
	return 0;
}

static int number(struct arrow_column *c, enum dtype_kind kind, int64_t bits)
{
	c->kind = ARROW_NUMBERS;
	c->dtype.kind = kind;
	c->dtype.size = (uint32_t)(bits / 8);
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return not_shown(c, "numbers of its size are not supported");
	return 0;
}

static int noted(struct arrow_column *c, const char *what, const char *unit,
		 const char *zone, size_t zone_len)
{
	if (asprintf(&c->note, "%s%s%s%.*s", what, unit, zone_len ? ", " : "",
		     (int)min_u64(zone_len, 64), zone ? zone : "") < 0) {
		c->note = NULL;
		return -ENOMEM;
	}
	return 0;
}

static const char *unit_of(int64_t unit)
{
	static const char *const units[] = {"seconds", "milliseconds",
					    "microseconds", "nanoseconds"};

	return unit >= 0 && unit < 4 ? units[unit] : "an unknown unit";
}

static int read_time(struct arrow_column *c, uint64_t type,
		     const struct flat_table *of)
{
	const char *zone;
	size_t len;

	switch (type) {
	case T_DATE:
		if (flat_signed(of, 0, 2, 1) == 0) {
			number(c, DTYPE_INT, 32);
			return noted(c, "date: days since 1970-01-01", "", NULL,
				     0);
		}
		number(c, DTYPE_INT, 64);
		return noted(c, "date: milliseconds since 1970-01-01", "", NULL,
			     0);
	case T_TIME:
		number(c, DTYPE_INT, flat_signed(of, 1, 4, 32));
		return noted(c,
			     "time of day: ", unit_of(flat_signed(of, 0, 2, 1)),
			     NULL, 0);
	case T_TIMESTAMP:
		number(c, DTYPE_INT, 64);
		zone = flat_text(of, 1, &len);
		return noted(c, "time since 1970-01-01: ",
			     unit_of(flat_signed(of, 0, 2, 0)), zone, len);
	default:
		number(c, DTYPE_INT, 64);
		return noted(c, "duration: ", unit_of(flat_signed(of, 0, 2, 1)),
			     NULL, 0);
	}
}

static int opaque(struct arrow_column *c, int64_t bytes)
{
	c->kind = ARROW_NUMBERS;
	c->dtype.kind = DTYPE_OPAQUE;
	c->dtype.size = (uint32_t)bytes;
	if (bytes < 1 || bytes > INT32_MAX)
		return not_shown(c, "its elements have no bytes");
	return 0;
}

/* Numbers that NumPy has none of. */
static int read_decimal(struct arrow_column *c, const struct flat_table *of)
{
	int64_t bits = flat_signed(of, 2, 4, 128);

	opaque(c, bits / 8);
	if (asprintf(&c->note,
		     "decimal: an integer of %lld bits, to be divided by "
		     "10^%lld",
		     (long long)bits, (long long)flat_signed(of, 1, 4, 0)) >= 0)
		return 0;
	c->note = NULL;
	return -ENOMEM;
}

static int read_number(struct arrow_column *c, uint64_t type,
		       const struct flat_table *of)
{
	static const int64_t bits[] = {16, 32, 64};
	int64_t n;

	switch (type) {
	case T_INT:
		return number(
			c, flat_unsigned(of, 1, 1, 0) ? DTYPE_INT : DTYPE_UINT,
			flat_signed(of, 0, 4, 0));
	case T_FLOAT:
		n = flat_signed(of, 0, 2, 0);
		return number(c, DTYPE_FLOAT, n >= 0 && n < 3 ? bits[n] : 0);
	case T_FIXED_BINARY:
		return opaque(c, flat_signed(of, 0, 4, 0));
	case T_DECIMAL:
		return read_decimal(c, of);
	case T_BOOL:
		c->kind = ARROW_BITS;
		c->dtype.kind = DTYPE_BOOL;
		c->dtype.size = 1;
		return 0;
	default:
		return read_time(c, type, of);
	}
}

static int read_text(struct arrow_column *c, bool wide)
{
	c->kind = ARROW_TEXT;
	c->wide = wide;
	c->dtype.kind = DTYPE_STRING;
	c->dtype.size = wide ? 8 : 4;
	c->dtype.vlen = true;
	c->dtype.text = "variable-length UTF-8 string";
	return 0;
}

static int read_type(struct arrow_column *c, const struct flat_table *field,
		     uint64_t type, const struct flat_table *of)
{
	if (is_dictionary(field))
		return not_shown(c, "it is dictionary-encoded (categories), "
				    "which is not supported: write it as "
				    "plain values");
	switch (type) {
	case T_UTF8:
	case T_LARGE_UTF8:
		return read_text(c, type == T_LARGE_UTF8);
	case T_INT:
	case T_FLOAT:
	case T_BOOL:
	case T_DECIMAL:
	case T_DATE:
	case T_TIME:
	case T_TIMESTAMP:
	case T_DURATION:
	case T_FIXED_BINARY:
		return read_number(c, type, of);
	case T_LIST:
	case T_LARGE_LIST:
	case T_LIST_VIEW:
	case T_LARGE_LIST_VIEW:
		return not_shown(c, "lists of varying length are not "
				    "supported: write a FixedSizeList");
	case T_BINARY:
	case T_LARGE_BINARY:
		return not_shown(c, "binary values of varying length are not "
				    "supported");
	case T_BINARY_VIEW:
	case T_UTF8_VIEW:
		return not_shown(c, "it is of a view type, which is not "
				    "supported: write plain strings");
	default:
		return not_shown(c, "a structure, union, map, null, interval "
				    "or run-end column is not supported");
	}
}

/* ---- columns -------------------------------------------------------------- */

/* Lists of fixed size down to what they hold. */
static int read_field(struct arrow_column *c, const struct flat_table *field,
		      struct error *err)
{
	struct flat_table at = *field;
	uint64_t type = flat_unsigned(&at, 2, 1, 0);
	struct flat_table of = flat_child(&at, 3);

	for (; type == T_FIXED_LIST && !is_dictionary(&at); c->buffer++) {
		struct flat_vector children = flat_list(&at, 5, 4);
		int64_t n = flat_signed(&of, 0, 4, 0);

		if (children.n != 1 || n < 0)
			return damaged(err);
		if (c->rank == RANK_MAX - 1)
			return not_shown(c, "it has more than 32 axes");
		if (mul_overflows(c->per_row, (uint64_t)n, &c->per_row))
			return not_shown(c, "its rows are too large");
		c->lists[c->rank] = (uint64_t)n;
		c->shape[c->rank++] = (uint64_t)n;
		at = flat_element(&children, 0);
		type = flat_unsigned(&at, 2, 1, 0);
		of = flat_child(&at, 3);
		c->nodes++;
	}
	if (read_type(c, &at, type, &of) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	if (c->kind == ARROW_TEXT && c->rank)
		return not_shown(c, "lists of strings are not supported");
	return 0;
}

static const char *attribute(const struct arrow_column *c, const char *key)
{
	const char *v = json_string_value(json_object_get(c->attributes, key));

	return v ? v : "";
}

/* The extension type "fixed shape tensor": a list with axes, in this order of memory. */
static void read_tensor_shape(struct arrow_column *c)
{
	json_t *o = json_loads(attribute(c, "ARROW:extension:metadata"),
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

static bool spend(struct reader *r, uint64_t bytes)
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
		return error_set(r->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < list.n; i++) {
		struct flat_table pair = flat_element(&list, i);
		size_t key_len, len;
		const char *key = flat_text(&pair, 0, &key_len);
		const char *value = flat_text(&pair, 1, &len);
		json_t *name;

		if (!spend(r, 16 + key_len + len))
			return damaged(r->err);
		name = json_text(key ? key : "", key_len);
		if (!name)
			return error_set(r->err, -ENOMEM, "out of memory");
		json_object_set_new(c->attributes, json_string_value(name),
				    json_text(value ? value : "", len));
		json_decref(name);
	}
	return 0;
}

static int read_column(struct reader *r, struct arrow_column *c,
		       const struct flat_table *field)
{
	size_t len;
	const char *name = flat_text(field, 0, &len);
	int e;

	c->node = r->s->nodes;
	c->buffer = r->s->buffers;
	c->views = r->s->views;
	c->nodes = c->per_row = 1;
	e = count(r, field, 0);
	if (e < 0)
		return e;
	if (!spend(r, len))
		return damaged(r->err);
	c->name = strndup(name ? name : "", len);
	if (!c->name)
		return error_set(r->err, -ENOMEM, "out of memory");
	e = read_attributes(r, c, field);
	if (e == 0)
		e = read_field(c, field, r->err);
	if (e == 0 && !strcmp(attribute(c, "ARROW:extension:name"),
			      "arrow.fixed_shape_tensor"))
		read_tensor_shape(c);
	return e;
}

static int read_columns(struct reader *r, const struct flat_table *t)
{
	struct flat_vector fields = flat_list(t, 1, 4);

	r->s->at = calloc(fields.n ? fields.n : 1, sizeof *r->s->at);
	if (!r->s->at)
		return error_set(r->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < fields.n; i++) {
		struct flat_table field = flat_element(&fields, i);
		int e;

		r->s->n = i + 1;
		e = read_column(r, &r->s->at[i], &field);
		if (e < 0)
			return e;
	}
	return t->in->bad ? damaged(r->err) : 0;
}

int arrow_schema_read(const struct flat_table *t, int64_t version,
		      struct arrow_schema *out, struct error *err)
{
	struct reader r = {out, version, t->in->n / 8,
			   SHARED_MAX * (uint64_t)t->in->n + SHARED_ROOM, err};
	int e;

	memset(out, 0, sizeof *out);
	if (version < VERSION_4 || version > VERSION_5)
		return error_set(err, -ENOTSUP,
				 "its format is version %lld of Arrow IPC, "
				 "and only 4 and 5 are supported",
				 (long long)version + 1);
	if (flat_signed(t, 0, 2, 0) != 0)
		return error_set(err, -ENOTSUP,
				 "its numbers are big-endian, which is not "
				 "supported");
	e = read_columns(&r, t);
	if (e < 0)
		arrow_schema_free(out);
	return e;
}

void arrow_schema_free(struct arrow_schema *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		free(s->at[i].name);
		free(s->at[i].note);
		json_decref(s->at[i].attributes);
	}
	free(s->at);
	memset(s, 0, sizeof *s);
}
