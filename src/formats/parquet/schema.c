/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the schema of a Parquet file: which columns there are, and of which types. */
#include "formats/parquet/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parquet_schema_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its schema is damaged");
}

enum repetition { REQUIRED, OPTIONAL, REPEATED };
/* The numbers of the union LogicalType of parquet.thrift. */
enum logical {
	L_STRING = 1,
	L_MAP = 2,
	L_LIST = 3,
	L_ENUM = 4,
	L_DECIMAL,
	L_DATE,
	L_TIME,
	L_TIMESTAMP,
	L_INTEGER = 10,
	L_JSON = 12,
	L_UUID = 14,
	L_FLOAT16 = 15,
	L_INTERVAL = 99 /* only a ConvertedType has it */
};
enum unit { MILLIS = 1, MICROS, NANOS };
struct element {
	int64_t type, width, repetition, children, converted;
	int64_t logical, bits, scale;
	enum unit unit;
	bool is_signed, utc;
	const char *name;
	size_t len;
};

static void element_read_integer(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			e->bits = thrift_number(t, &f);
		else if (f.id == 2)
			e->is_signed = thrift_bool(t, &f);
		else
			thrift_skip(t, f.type);
	}
}

static void element_read_decimal(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			e->scale = thrift_number(t, &f);
		else
			thrift_skip(t, f.type);
	}
}

/* Read the union TimeUnit. */
static void element_read_unit(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		e->unit = f.id >= MILLIS && f.id <= NANOS ? f.id : 0;
		thrift_skip(t, f.type);
	}
}

/* Read TimeType or TimestampType. */
static void element_read_time(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		if (f.id == 1)
			e->utc = thrift_bool(t, &f);
		else if (f.id == 2 && thrift_struct(t, &f))
			element_read_unit(t, e);
		else
			thrift_skip(t, f.type);
	}
}

static void element_read_logical(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f)) {
		e->logical = f.id;
		if (f.id == L_INTEGER && thrift_struct(t, &f))
			element_read_integer(t, e);
		else if (f.id == L_DECIMAL && thrift_struct(t, &f))
			element_read_decimal(t, e);
		else if ((f.id == L_TIME || f.id == L_TIMESTAMP) &&
			 thrift_struct(t, &f))
			element_read_time(t, e);
		else
			thrift_skip(t, f.type);
	}
}

static void read_element(struct thrift *t, struct element *e)
{
	struct thrift_field f = {0, 0};

	memset(e, 0, sizeof *e);
	e->type = e->converted = -1;
	e->name = "";
	while (thrift_next(t, &f)) {
		if (f.id == 1)
			e->type = thrift_number(t, &f);
		else if (f.id == 2)
			e->width = thrift_number(t, &f);
		else if (f.id == 3)
			e->repetition = thrift_number(t, &f);
		else if (f.id == 4)
			e->name = thrift_text(t, &f, &e->len);
		else if (f.id == 5)
			e->children = thrift_number(t, &f);
		else if (f.id == 6)
			e->converted = thrift_number(t, &f);
		else if (f.id == 7)
			e->scale = thrift_number(t, &f);
		else if (f.id == 10 && thrift_struct(t, &f))
			element_read_logical(t, e);
		else
			thrift_skip(t, f.type);
	}
}

/* Set the logical type from the ConvertedType, which older files have instead. */
static void element_read_converted(struct element *e)
{
	static const struct {
		int64_t logical, bits;
		bool is_signed;
		enum unit unit;
	} of[] = {
		[0] = {L_STRING, 0, false, 0},
		[4] = {L_ENUM, 0, false, 0},
		[5] = {L_DECIMAL, 0, false, 0},
		[6] = {L_DATE, 0, false, 0},
		[7] = {L_TIME, 0, false, MILLIS},
		[8] = {L_TIME, 0, false, MICROS},
		[9] = {L_TIMESTAMP, 0, false, MILLIS},
		[10] = {L_TIMESTAMP, 0, false, MICROS},
		[11] = {L_INTEGER, 8, false, 0},
		[12] = {L_INTEGER, 16, false, 0},
		[13] = {L_INTEGER, 32, false, 0},
		[14] = {L_INTEGER, 64, false, 0},
		[15] = {L_INTEGER, 8, true, 0},
		[16] = {L_INTEGER, 16, true, 0},
		[17] = {L_INTEGER, 32, true, 0},
		[18] = {L_INTEGER, 64, true, 0},
		[19] = {L_JSON, 0, false, 0},
		[21] = {L_INTERVAL, 0, false, 0},
	};

	if (e->logical || e->converted < 0 ||
	    e->converted >= (int64_t)(sizeof of / sizeof *of))
		return;
	e->logical = of[e->converted].logical;
	e->bits = of[e->converted].bits;
	e->is_signed = of[e->converted].is_signed;
	e->unit = of[e->converted].unit;
	e->utc = e->unit; /* times with a ConvertedType are in UTC */
}

/* Note that the numbers, or bytes, are decimals. */
static void leaf_set_decimal(struct parquet_column *c, const struct element *e)
{
	c->decimal = e->type == PARQUET_INT32 || e->type == PARQUET_INT64 ||
		     e->type == PARQUET_FIXED;
	c->scale = e->scale;
	snprintf(c->note, sizeof c->note, "decimal: %sto be divided by 10^%lld",
		 e->type == PARQUET_FIXED ? "big-endian, " : "",
		 (long long)e->scale);
}

static void leaf_set_note(struct parquet_column *c, const struct element *e)
{
	static const char *const units[] = {"an unknown unit", "milliseconds",
					    "microseconds", "nanoseconds"};
	const char *zone = e->utc ? ", UTC" : ", local time";
	size_t n = sizeof c->note;

	if (e->logical == L_DATE)
		snprintf(c->note, n, "date: days since 1970-01-01");
	else if (e->logical == L_TIME)
		snprintf(c->note, n, "time of day: %s%s", units[e->unit], zone);
	else if (e->logical == L_TIMESTAMP)
		snprintf(c->note, n, "time since 1970-01-01: %s%s",
			 units[e->unit], zone);
	else if (e->logical == L_DECIMAL)
		leaf_set_decimal(c, e);
	else if (e->logical == L_UUID)
		snprintf(c->note, n, "UUID");
	else if (e->logical == L_INTERVAL)
		snprintf(c->note, n,
			 "interval: months, days, milliseconds as uint32");
}

static void set_dtype(struct parquet_column *c, enum dtype_kind kind,
		      uint32_t width, uint32_t size)
{
	c->width = width;
	c->dtype.kind = kind;
	c->dtype.size = size;
}

static void set_integer(struct parquet_column *c, const struct element *e,
			uint32_t width)
{
	set_dtype(c, DTYPE_INT, width, width);
	if (e->logical != L_INTEGER)
		return;
	if (!e->is_signed)
		c->dtype.kind = DTYPE_UINT;
	if (width == 4 && (e->bits == 8 || e->bits == 16))
		c->dtype.size = (uint32_t)e->bits / 8;
}

void parquet_column_as_blob(struct parquet_column *c)
{
	c->dtype.kind = DTYPE_BLOB;
	c->dtype.text = "binary of varying length";
}

static void leaf_set_type(struct parquet_column *c, const struct element *e)
{
	switch (e->type) {
	case PARQUET_BOOLEAN:
		set_dtype(c, DTYPE_BOOL, 1, 1);
		break;
	case PARQUET_INT32:
		set_integer(c, e, 4);
		break;
	case PARQUET_INT64:
		set_integer(c, e, 8);
		break;
	case PARQUET_INT96:
		c->why_not = "its times have 96 bits (INT96), which is "
			     "deprecated and not supported: write timestamps";
		break;
	case PARQUET_FLOAT:
		set_dtype(c, DTYPE_FLOAT, 4, 4);
		break;
	case PARQUET_DOUBLE:
		set_dtype(c, DTYPE_FLOAT, 8, 8);
		break;
	case PARQUET_FIXED:
		if (e->width < 1 || e->width > INT32_MAX)
			c->why_not = "its elements have no bytes, or more than "
				     "2 GiB";
		set_dtype(c, DTYPE_OPAQUE, (uint32_t)e->width,
			  (uint32_t)e->width);
		if (e->logical == L_FLOAT16 && e->width == 2)
			c->dtype.kind = DTYPE_FLOAT;
		break;
	case PARQUET_BYTES:
		set_dtype(c, DTYPE_STRING, 0, 4);
		c->text = c->dtype.vlen = true;
		c->dtype.text = "variable-length UTF-8 string";
		if (e->logical != L_STRING && e->logical != L_ENUM &&
		    e->logical != L_JSON)
			parquet_column_as_blob(c);
		break;
	default:
		c->why_not =
			"its type is not known to this version of tensorfs";
	}
}

/* Columns that are lists of numbers become sequences; lists of structures stay lines of
 * JSON. */
static void find_lists(struct parquet_meta *m)
{
	const struct parquet_node *leaf, *repeated;
	struct parquet_column *c;

	for (uint32_t i = 0; i < m->n_nodes; i = m->nodes[i].next) {
		leaf = parquet_tree_plain_list(&m->nodes[i], &repeated);
		c = leaf ? &m->at[leaf->leaf] : NULL;
		if (!c || c->why_not || c->dtype.kind > DTYPE_FLOAT)
			continue;
		c->nested = false;
		c->optional = true;
		c->levels = leaf->levels;
		c->list_level = repeated->levels;
		c->item.name = "item";
		c->item.type = c->dtype;
		memset(&c->dtype, 0, sizeof c->dtype);
		c->dtype.kind = DTYPE_RAGGED;
		c->dtype.size = 4;
		c->dtype.vlen = c->text = true;
		c->dtype.nfields = 1;
	}
}

/* Hugging Face datasets store a file as a structure {bytes, path}.  Return which member
 * of one this leaf can be: 'b', 'p', or 0. */
static char file_member(const struct element *e, const struct element *top)
{
	if (e->repetition == REPEATED || top->repetition == REPEATED ||
	    e->type != PARQUET_BYTES || e->logical == L_DECIMAL)
		return 0;
	if (e->len == 5 && !memcmp(e->name, "bytes", 5))
		return 'b';
	return e->len == 4 && !memcmp(e->name, "path", 4) ? 'p' : 0;
}

/* Show elements that consist of bytes and path, and nothing else, as files of the
 * bytes. */
static void find_files(struct parquet_meta *m)
{
	for (uint32_t i = 0; i + 1 < m->n; i++) {
		struct parquet_column *a = &m->at[i], *b = a + 1, *swap;

		if (a->top != b->top || a->member + b->member != 'b' + 'p' ||
		    (i && a[-1].top == a->top) ||
		    (i + 2 < m->n && b[1].top == a->top))
			continue;
		if (a->member == 'p') {
			swap = a;
			a = b;
			b = swap;
		}
		if (a->dtype.kind != DTYPE_BLOB)
			continue;
		a->nested = false;
		b->hidden = true;
	}
}

/* Add the column of a leaf.  It has the name of `top`, its element below the root. */
static int add_leaf(struct parquet_meta *m, struct element *e,
		    const struct element *top, bool nested, struct error *err)
{
	struct parquet_column *c;

	if (m->n == m->room) {
		uint32_t room = m->room ? 2 * m->room : 16;

		c = realloc(m->at, room * sizeof *c);
		if (!c)
			return error_no_memory(err, "the table of columns");
		m->at = c;
		m->room = room;
	}
	c = memset(&m->at[m->n], 0, sizeof *c);
	c->name = strndup(top->name, top->len);
	if (!c->name)
		return error_no_memory(err, "the name of a column");
	m->n++;
	element_read_converted(e);
	c->type = e->type;
	c->levels = (e->repetition == OPTIONAL) +
		    (nested && top->repetition == OPTIONAL);
	c->optional = c->levels;
	leaf_set_type(c, e);
	leaf_set_note(c, e);
	if (e->logical == L_DECIMAL && e->type == PARQUET_BYTES)
		c->why_not = "it has decimals of varying length, which are not "
			     "supported: write integers or floats";
	c->nested = nested || e->repetition == REPEATED;
	return 0;
}

int parquet_schema_read(struct thrift *t, const struct thrift_field *f,
			struct parquet_meta *m, struct error *err)
{
	uint32_t n = thrift_structs(t, f);
	/* Elements that are still to come below a group. */
	uint64_t inside = 0;
	struct element e, top;
	uint32_t tops = 0;
	/* The element is below another group in its top element. */
	bool deep = false;
	int r = 0;

	if (!n || m->at)
		return parquet_schema_damaged(err);
	read_element(t, &e);
	top = e;
	for (uint32_t i = 1; r == 0 && i < n && !t->bad; i++) {
		bool nested = inside;

		read_element(t, &e);
		if (e.children < 0 || e.children > n)
			return parquet_schema_damaged(err);
		r = parquet_tree_add(m, e.name, e.len, e.repetition,
				     (uint32_t)e.children, err);
		if (r < 0)
			return r;
		m->nodes[m->n_nodes - 1].is_list =
			e.logical == L_LIST || e.converted == 3;
		m->nodes[m->n_nodes - 1].is_map = e.logical == L_MAP ||
						  e.converted == 1 ||
						  e.converted == 2;
		inside -= nested;
		inside += (uint64_t)e.children;
		deep = nested && (deep || e.children);
		if (!nested) {
			top = e;
			tops++;
		}
		if (e.children)
			continue;
		r = add_leaf(m, &e, &top, nested, err);
		if (r == 0) {
			m->at[m->n - 1].top = tops;
			m->at[m->n - 1].member =
				nested && !deep ? file_member(&e, &top) : 0;
		}
	}
	if (r == 0 && inside)
		return parquet_schema_damaged(err);
	if (r == 0 && !t->bad)
		r = parquet_tree_finish(m, err);
	if (r == 0 && !t->bad) {
		find_lists(m);
		find_files(m);
	}
	/* Columns do not move any more. */
	for (uint32_t i = 0; i < m->n; i++)
		if (m->at[i].dtype.kind == DTYPE_RAGGED)
			m->at[i].dtype.fields = &m->at[i].item;
	return r;
}
