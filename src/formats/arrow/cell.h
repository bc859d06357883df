/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of rows that are not plain arrays: a tree of cells for each column. */
#ifndef FORMATS_ARROW_CELL_H
#define FORMATS_ARROW_CELL_H

#include "base/error.h"
#include "base/vec.h"
#include "formats/arrow/flat.h"

enum arrow_cell_kind {
	CELL_NULL, /* every row is null */
	CELL_INT,
	CELL_UINT,
	CELL_FLOAT,
	CELL_BOOL,
	CELL_FIXED, /* the same number of bytes in each row */
	CELL_BYTES,
	CELL_TEXT,
	CELL_LIST,
	CELL_FIXED_LIST, /* `per` items in each row */
	CELL_STRUCT,
	CELL_DICTIONARY /* numbers of values in a dictionary */
};
/* A position among the nodes, buffers and views of a batch, or how many of them there
 * are. */
struct arrow_counts {
	uint32_t nodes, buffers;
	/* Fields of views, which have further buffers in each batch. */
	uint32_t views;
};
struct arrow_cell {
	enum arrow_cell_kind kind;
	char *name;     /* its name as a member of a structure */
	uint32_t size;  /* INT to FIXED, DICTIONARY: bytes of one row */
	bool is_signed; /* DICTIONARY: the numbers are signed */
	bool wide;      /* BYTES, TEXT, LIST: offsets of 8 bytes, not 4 */
	bool view;      /* LIST: offsets and lengths; BYTES, TEXT: views */
	bool decimal;   /* FIXED: an integer to be divided by 10^scale */
	int64_t scale;
	uint64_t per;
	/* Its node, its first buffer, and the views before it. */
	struct arrow_counts at;
	/* Members of a structure, items of a list. */
	struct arrow_cell *child;
	uint32_t n;
	/* DICTIONARY: the type of its values, whose `at` counts from 0. */
	struct arrow_cell *values;
	/* What a batch of these values consists of. */
	struct arrow_counts all;
	int64_t id;
};
/* How much of a schema may still follow. */
struct arrow_cell_limits {
	uint64_t fields, bytes; /* bytes: of names */
	int64_t version;
};
/* Return how many buffers a field of this type has, without the fields in it; if it is a
 * field of views, count it in c->views. */
unsigned arrow_buffers_of(uint64_t type, const struct flat_table *of,
			  int64_t version, struct arrow_counts *c);
/* Read the type of the rows of a field whose nodes and buffers begin at *at; *at moves
 * behind them.  The field was checked before.  Returns 0; 1 if the type is not supported,
 * with *why set to the reason (a static string); -EBADMSG or -ENOMEM.  The caller calls
 * arrow_cell_done in any case. */
int arrow_cell_read(struct arrow_cell *c, const struct flat_table *field,
		    struct arrow_counts *at, struct arrow_cell_limits *left,
		    const char **why);
void arrow_cell_done(struct arrow_cell *c);
/* Write the type in words, as "list of string" or "structure of 2 fields", into `buf`: at
 * most `n` bytes with the NUL. */
void arrow_cell_describe(const struct arrow_cell *c, char *buf, size_t n);
/* If the cell is a file as Hugging Face datasets store it, {bytes, path}, return the
 * member with the bytes, else NULL. */
const struct arrow_cell *arrow_cell_file(const struct arrow_cell *c);
/* Return the cell that describes the values of the rows: for a dictionary that of its
 * values. */
const struct arrow_cell *arrow_cell_value(const struct arrow_cell *c);

#endif
