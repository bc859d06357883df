/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the types of rows that are not plain arrays into a tree of cells. */
#include "formats/arrow/cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/arrow/type.h"

#define VERSION_4 3
#define DEPTH_MAX 64

unsigned arrow_buffers_of(uint64_t type, const struct flat_table *of,
			  int64_t version, struct arrow_counts *c)
{
	switch (type) {
	case T_NULL:
	case T_RUNS:
		return 0;
	case T_STRUCT:
	case T_FIXED_LIST:
		return 1;
	case T_UNION:
		/* Mode 1 is dense; version 4 has a validity buffer, too. */
		return (flat_signed(of, 0, 2, 0) == 1 ? 2 : 1) +
		       (version == VERSION_4);
	case T_BINARY:
	case T_UTF8:
	case T_LARGE_BINARY:
	case T_LARGE_UTF8:
	case T_LIST_VIEW:
	case T_LARGE_LIST_VIEW:
		return 3;
	case T_BINARY_VIEW:
	case T_UTF8_VIEW:
		c->views++;
		return 2;
	default:
		return 2;
	}
}

static bool set_fixed(struct arrow_cell *c, enum arrow_cell_kind kind,
		      int64_t bytes)
{
	c->kind = kind;
	c->size = (uint32_t)bytes;
	return bytes > 0 && bytes <= INT32_MAX;
}

static bool set_number(struct arrow_cell *c, enum arrow_cell_kind kind,
		       int64_t bits)
{
	return set_fixed(c, kind, bits / 8) &&
	       (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

static bool set_varying(struct arrow_cell *c, enum arrow_cell_kind kind,
			bool wide, bool view)
{
	c->kind = kind;
	c->wide = wide;
	c->view = view;
	return true;
}

/* Set a type of fixed size.  Returns false if `type` is not one, or has an unknown
 * size. */
static bool set_number_type(struct arrow_cell *c, uint64_t type,
			    const struct flat_table *of)
{
	static const int64_t bits[] = {16, 32, 64};
	int64_t n;

	switch (type) {
	case T_INT:
		return set_number(
			c, flat_unsigned(of, 1, 1, 0) ? CELL_INT : CELL_UINT,
			flat_signed(of, 0, 4, 0));
	case T_FLOAT:
		n = flat_signed(of, 0, 2, 0);
		return set_number(c, CELL_FLOAT, n >= 0 && n < 3 ? bits[n] : 0);
	case T_BOOL:
		return set_fixed(c, CELL_BOOL, 1);
	case T_DECIMAL:
		c->decimal = true;
		c->scale = flat_signed(of, 1, 4, 0);
		return set_fixed(c, CELL_FIXED, flat_signed(of, 2, 4, 128) / 8);
	case T_FIXED_BINARY:
		return set_fixed(c, CELL_FIXED, flat_signed(of, 0, 4, 0));
	case T_DATE:
		return set_number(c, CELL_INT,
				  flat_signed(of, 0, 2, 1) ? 64 : 32);
	case T_TIME:
		return set_number(c, CELL_INT, flat_signed(of, 1, 4, 32));
	case T_TIMESTAMP:
	case T_DURATION:
		return set_number(c, CELL_INT, 64);
	default:
		return false;
	}
}

static bool cell_set_type(struct arrow_cell *c, uint64_t type,
			  const struct flat_table *of)
{
	bool large = type == T_LARGE_BINARY || type == T_LARGE_UTF8 ||
		     type == T_LARGE_LIST || type == T_LARGE_LIST_VIEW;

	switch (type) {
	case T_NULL:
		c->kind = CELL_NULL;
		return true;
	case T_BINARY:
	case T_LARGE_BINARY:
	case T_BINARY_VIEW:
		return set_varying(c, CELL_BYTES, large, type == T_BINARY_VIEW);
	case T_UTF8:
	case T_LARGE_UTF8:
	case T_UTF8_VIEW:
		return set_varying(c, CELL_TEXT, large, type == T_UTF8_VIEW);
	case T_LIST:
	case T_LARGE_LIST:
	case T_MAP: /* a list of {key, value} */
		return set_varying(c, CELL_LIST, large, false);
	case T_LIST_VIEW:
	case T_LARGE_LIST_VIEW:
		return set_varying(c, CELL_LIST, large, true);
	case T_FIXED_LIST:
		c->kind = CELL_FIXED_LIST;
		c->per = (uint64_t)flat_signed(of, 0, 4, 0);
		return c->per <= INT32_MAX;
	case T_STRUCT:
		c->kind = CELL_STRUCT;
		return true;
	default:
		return set_number_type(c, type, of);
	}
}

static int cell_read_field(struct arrow_cell *c, const struct flat_table *field,
			   struct arrow_counts *at,
			   struct arrow_cell_limits *left, const char **why,
			   unsigned depth);

static int cell_read_children(struct arrow_cell *c,
			      const struct flat_table *field,
			      struct arrow_counts *at,
			      struct arrow_cell_limits *left, const char **why,
			      unsigned depth)
{
	struct flat_vector children = flat_list(field, 5, 4);
	int r = 0;

	if (c->kind != CELL_STRUCT && children.n != 1)
		return -EBADMSG;
	if (children.n > left->fields)
		return -EBADMSG;
	c->child = calloc(children.n ? children.n : 1, sizeof *c->child);
	if (!c->child)
		return -ENOMEM;
	for (uint32_t i = 0; i < children.n && r == 0; i++) {
		struct flat_table child = flat_element(&children, i);

		c->n = i + 1;
		r = cell_read_field(&c->child[i], &child, at, left, why,
				    depth + 1);
	}
	return r;
}

static int cell_read_dictionary(struct arrow_cell *c,
				const struct flat_table *field,
				struct arrow_cell_limits *left,
				const char **why, unsigned depth)
{
	struct flat_table d = flat_child(field, 4), type = flat_child(&d, 1);
	int64_t bits = type.pos ? flat_signed(&type, 0, 4, 0) : 32;

	c->kind = CELL_DICTIONARY;
	c->id = flat_signed(&d, 0, 8, 0);
	c->size = (uint32_t)(bits / 8);
	c->is_signed = !type.pos || flat_unsigned(&type, 1, 1, 0);
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return -EBADMSG;
	c->values = calloc(1, sizeof *c->values);
	if (!c->values)
		return -ENOMEM;
	memset(&c->all, 0, sizeof c->all);
	/* The type of the values is the type of the field itself. */
	return cell_read_field(c->values, field, &c->all, left, why,
			       depth + DEPTH_MAX + 1);
}

/* Read a field and the fields in it.  A dictionary's field is read twice: for the numbers
 * of its rows, and then, with DEPTH_MAX + 1 added to `depth`, for its values. */
static int cell_read_field(struct arrow_cell *c, const struct flat_table *field,
			   struct arrow_counts *at,
			   struct arrow_cell_limits *left, const char **why,
			   unsigned depth)
{
	uint64_t type = flat_unsigned(field, 2, 1, 0);
	struct flat_table of = flat_child(field, 3);
	bool values = depth > DEPTH_MAX;
	size_t len;
	const char *name = flat_text(field, 0, &len);

	depth -= values ? DEPTH_MAX + 1 : 0;
	if (!left->fields || depth >= DEPTH_MAX || !field->pos ||
	    len > left->bytes)
		return -EBADMSG;
	left->fields--;
	left->bytes -= len;
	c->name = strndup(name ? name : "", len);
	if (!c->name)
		return -ENOMEM;
	c->at = *at;
	at->nodes++;
	if (!values && arrow_is_dictionary(field)) {
		at->buffers += 2;
		return cell_read_dictionary(c, field, left, why, depth);
	}
	at->buffers += arrow_buffers_of(type, &of, left->version, at);
	if (!cell_set_type(c, type, &of)) {
		*why = "unions, run-end columns and intervals are not "
		       "supported";
		return 1;
	}
	return c->kind == CELL_LIST || c->kind == CELL_FIXED_LIST ||
			       c->kind == CELL_STRUCT
		       ? cell_read_children(c, field, at, left, why, depth)
		       : 0;
}

int arrow_cell_read(struct arrow_cell *c, const struct flat_table *field,
		    struct arrow_counts *at, struct arrow_cell_limits *left,
		    const char **why)
{
	memset(c, 0, sizeof *c);
	return cell_read_field(c, field, at, left, why, 0);
}

void arrow_cell_done(struct arrow_cell *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		arrow_cell_done(&c->child[i]);
	free(c->child);
	if (c->values)
		arrow_cell_done(c->values);
	free(c->values);
	free(c->name);
	memset(c, 0, sizeof *c);
}

const struct arrow_cell *arrow_cell_value(const struct arrow_cell *c)
{
	while (c->kind == CELL_DICTIONARY)
		c = c->values;
	return c;
}

const struct arrow_cell *arrow_cell_file(const struct arrow_cell *c)
{
	if (c->kind != CELL_STRUCT || c->n != 2)
		return NULL;
	for (uint32_t i = 0; i < 2; i++)
		if (c->child[i].kind == CELL_BYTES &&
		    !strcmp(c->child[i].name, "bytes") &&
		    !strcmp(c->child[1 - i].name, "path"))
			return &c->child[i];
	return NULL;
}

void arrow_cell_describe(const struct arrow_cell *c, char *buf, size_t n)
{
	static const char *const names[] = {
		[CELL_NULL] = "null",       [CELL_INT] = "int",
		[CELL_UINT] = "uint",       [CELL_FLOAT] = "float",
		[CELL_BOOL] = "bool",       [CELL_FIXED] = "bytes",
		[CELL_BYTES] = "bytes",     [CELL_TEXT] = "string",
		[CELL_LIST] = "list of ",   [CELL_FIXED_LIST] = "list of ",
		[CELL_STRUCT] = "structure"};
	const char *name;
	size_t len;

	c = arrow_cell_value(c);
	name = names[c->kind];
	if (c->decimal)
		name = "decimal";
	if (c->kind == CELL_INT || c->kind == CELL_UINT ||
	    c->kind == CELL_FLOAT)
		snprintf(buf, n, "%s%u", name, 8 * c->size);
	else if (c->kind == CELL_STRUCT)
		snprintf(buf, n, "structure of %u field%s", c->n,
			 c->n == 1 ? "" : "s");
	else
		snprintf(buf, n, "%s", name);
	len = strlen(buf);
	if ((c->kind == CELL_LIST || c->kind == CELL_FIXED_LIST) && len + 1 < n)
		arrow_cell_describe(&c->child[0], buf + len, n - len);
}
