/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets a column's element type from the type that its Arrow field has. */
#include "formats/arrow/type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

int arrow_not_shown(struct arrow_column *c, const char *why)
{
	c->kind = ARROW_NOT;
	c->why_not = why;
	return 0;
}

static int type_set_number(struct arrow_column *c, enum dtype_kind kind,
			   int64_t bits)
{
	c->kind = ARROW_NUMBERS;
	c->dtype.kind = kind;
	c->dtype.size = (uint32_t)(bits / 8);
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return arrow_not_shown(
			c, "its numbers have a size that is not supported");
	return 0;
}

static int type_set_note(struct arrow_column *c, const char *what,
			 const char *unit, const char *zone, size_t zone_len)
{
	if (asprintf(&c->note, "%s%s%s%.*s", what, unit, zone_len ? ", " : "",
		     (int)min_u64(zone_len, 64), zone ? zone : "") < 0) {
		c->note = NULL;
		return -ENOMEM;
	}
	return 0;
}

static const char *time_unit_name(int64_t unit)
{
	static const char *const units[] = {"seconds", "milliseconds",
					    "microseconds", "nanoseconds"};

	return unit >= 0 && unit < 4 ? units[unit] : "an unknown unit";
}

static int type_read_time(struct arrow_column *c, uint64_t type,
			  const struct flat_table *of)
{
	const char *zone;
	size_t len;

	switch (type) {
	case T_DATE:
		if (flat_signed(of, 0, 2, 1) == 0) {
			type_set_number(c, DTYPE_INT, 32);
			return type_set_note(c, "date: days since 1970-01-01",
					     "", NULL, 0);
		}
		type_set_number(c, DTYPE_INT, 64);
		return type_set_note(c, "date: milliseconds since 1970-01-01",
				     "", NULL, 0);
	case T_TIME:
		type_set_number(c, DTYPE_INT, flat_signed(of, 1, 4, 32));
		return type_set_note(c, "time of day: ",
				     time_unit_name(flat_signed(of, 0, 2, 1)),
				     NULL, 0);
	case T_TIMESTAMP:
		type_set_number(c, DTYPE_INT, 64);
		zone = flat_text(of, 1, &len);
		return type_set_note(c, "time since 1970-01-01: ",
				     time_unit_name(flat_signed(of, 0, 2, 0)),
				     zone, len);
	default:
		type_set_number(c, DTYPE_INT, 64);
		return type_set_note(c, "duration: ",
				     time_unit_name(flat_signed(of, 0, 2, 1)),
				     NULL, 0);
	}
}

static int type_set_opaque(struct arrow_column *c, int64_t bytes)
{
	c->kind = ARROW_NUMBERS;
	c->dtype.kind = DTYPE_OPAQUE;
	c->dtype.size = (uint32_t)bytes;
	if (bytes < 1 || bytes > INT32_MAX)
		return arrow_not_shown(
			c, "its elements have no bytes, or more than 2 GiB");
	return 0;
}

/* Decimals, which NumPy has no type for, are opaque bytes with a note. */
static int type_read_decimal(struct arrow_column *c,
			     const struct flat_table *of)
{
	int64_t bits = flat_signed(of, 2, 4, 128);

	type_set_opaque(c, bits / 8);
	if (asprintf(&c->note,
		     "decimal: an integer of %lld bits, to be divided by "
		     "10^%lld",
		     (long long)bits, (long long)flat_signed(of, 1, 4, 0)) >= 0)
		return 0;
	c->note = NULL;
	return -ENOMEM;
}

static int type_read_number(struct arrow_column *c, uint64_t type,
			    const struct flat_table *of)
{
	static const int64_t bits[] = {16, 32, 64};
	int64_t n;

	switch (type) {
	case T_INT:
		return type_set_number(
			c, flat_unsigned(of, 1, 1, 0) ? DTYPE_INT : DTYPE_UINT,
			flat_signed(of, 0, 4, 0));
	case T_FLOAT:
		n = flat_signed(of, 0, 2, 0);
		return type_set_number(c, DTYPE_FLOAT,
				       n >= 0 && n < 3 ? bits[n] : 0);
	case T_FIXED_BINARY:
		return type_set_opaque(c, flat_signed(of, 0, 4, 0));
	case T_DECIMAL:
		return type_read_decimal(c, of);
	case T_BOOL:
		c->kind = ARROW_BITS;
		c->dtype.kind = DTYPE_BOOL;
		c->dtype.size = 1;
		return 0;
	default:
		return type_read_time(c, type, of);
	}
}

static void type_set_varying(struct arrow_column *c, enum arrow_kind kind,
			     bool wide)
{
	c->kind = kind;
	c->wide = wide;
	c->dtype.size = wide ? 8 : 4;
	c->dtype.vlen = true;
}

static int type_read_text(struct arrow_column *c, bool wide)
{
	type_set_varying(c, ARROW_TEXT, wide);
	c->dtype.kind = DTYPE_STRING;
	c->dtype.text = "variable-length UTF-8 string";
	return 0;
}

void arrow_column_as_blob(struct arrow_column *c)
{
	c->dtype.kind = DTYPE_BLOB;
	c->dtype.text = "binary of varying length";
}

static int type_read_blob(struct arrow_column *c, bool wide)
{
	type_set_varying(c, ARROW_TEXT, wide);
	arrow_column_as_blob(c);
	return 0;
}

static int type_read_list(struct arrow_column *c,
			  const struct flat_table *field, bool wide)
{
	struct flat_vector children = flat_list(field, 5, 4);
	struct arrow_column item = {.kind = ARROW_NOT};
	struct flat_table child, of;
	uint64_t type;

	if (children.n == 1) {
		child = flat_element(&children, 0);
		type = flat_unsigned(&child, 2, 1, 0);
		of = flat_child(&child, 3);
		if ((type == T_INT || type == T_FLOAT) &&
		    !arrow_is_dictionary(&child))
			type_read_number(&item, type, &of);
	}
	if (item.kind != ARROW_NUMBERS)
		return arrow_not_shown(c,
				       "lists of varying length are supported "
				       "of integers and floats only");
	type_set_varying(c, ARROW_LISTS, wide);
	c->item.name = "item";
	c->item.type = item.dtype;
	c->dtype.kind = DTYPE_RAGGED;
	c->dtype.nfields = 1;
	c->dtype.fields = &c->item;
	return 0;
}

int arrow_type_read(struct arrow_column *c, const struct flat_table *field,
		    uint64_t type, const struct flat_table *of)
{
	if (arrow_is_dictionary(field))
		return arrow_not_shown(c, "its dictionary is not supported");
	switch (type) {
	case T_UTF8:
	case T_LARGE_UTF8:
		return type_read_text(c, type == T_LARGE_UTF8);
	case T_INT:
	case T_FLOAT:
	case T_BOOL:
	case T_DECIMAL:
	case T_DATE:
	case T_TIME:
	case T_TIMESTAMP:
	case T_DURATION:
	case T_FIXED_BINARY:
		return type_read_number(c, type, of);
	case T_LIST:
	case T_LARGE_LIST:
		return type_read_list(c, field, type == T_LARGE_LIST);
	case T_BINARY:
	case T_LARGE_BINARY:
		return type_read_blob(c, type == T_LARGE_BINARY);
	default:
		return arrow_not_shown(c, "its type is not supported");
	}
}

/* ---- cells --------------------------------------------------------------- */

/* Set the column's element type if each row is one number, or bytes of one length; no row
 * may be null.  Returns false if the rows are something else. */
static bool cells_are_numbers(struct arrow_column *c,
			      const struct arrow_cell *v)
{
	static const enum dtype_kind kinds[] = {[CELL_INT] = DTYPE_INT,
						[CELL_UINT] = DTYPE_UINT,
						[CELL_FLOAT] = DTYPE_FLOAT,
						[CELL_BOOL] = DTYPE_BOOL,
						[CELL_FIXED] = DTYPE_OPAQUE};

	if (v->kind < CELL_INT || v->kind > CELL_FIXED)
		return false;
	c->dtype = (struct dtype){.kind = kinds[v->kind], .size = v->size};
	return true;
}

/* Add to the column's note that nulls are shown as JSON.  Without memory the note stays
 * as it is. */
static void column_note_nulls(struct arrow_column *c)
{
	static const char said[] =
		"values are missing in it (nulls), so each row is a line of "
		"JSON: null if it is missing";
	char *note;

	if (asprintf(&note, "%s%s%s", c->note ? c->note : "",
		     c->note ? "; " : "", said) < 0)
		return;
	free(c->note);
	c->note = note;
}

bool arrow_column_as_cells(struct arrow_column *c, bool nulls)
{
	const struct arrow_cell *v = arrow_cell_value(&c->cell);
	bool file = v->kind == CELL_BYTES || arrow_cell_file(&c->cell);

	if (c->cell_why) {
		c->kind = ARROW_NOT;
		c->why_not = c->cell_why;
		return false;
	}
	c->kind = ARROW_CELLS;
	c->rank = 0;
	if (!nulls && cells_are_numbers(c, v))
		return true;
	memset(&c->dtype, 0, sizeof c->dtype);
	c->dtype.size = 8;
	c->dtype.vlen = true;
	if (file) {
		arrow_column_as_blob(c);
	} else if (v->kind == CELL_TEXT && !nulls) {
		c->dtype.kind = DTYPE_STRING;
		c->dtype.text = "variable-length UTF-8 string";
	} else {
		c->dtype.kind = DTYPE_TEXT;
		if (v->decimal) {
			/* The note describes the integer, which is not shown. */
			free(c->note);
			c->note = NULL;
		}
		arrow_cell_describe(&c->cell, c->what, sizeof c->what - 8);
		c->dtype.text = c->what;
		if (nulls) {
			strcat(c->what, " or null");
			column_note_nulls(c);
		}
	}
	return true;
}
