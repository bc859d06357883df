/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of an Arrow IPC file that are no array: what their rows consist of. */
#ifndef FORMATS_ARROW_CELL_H
#define FORMATS_ARROW_CELL_H

#include "base/error.h"
#include "base/vec.h"
#include "formats/arrow/flat.h"

enum arrow_cell_kind {
	CELL_NULL, /* nothing at all */
	CELL_INT,
	CELL_UINT,
	CELL_FLOAT,
	CELL_BOOL,
	CELL_FIXED, /* bytes, as many in each row */
	CELL_BYTES,
	CELL_TEXT,
	CELL_LIST,
	CELL_FIXED_LIST, /* `per` items */
	CELL_STRUCT,
	CELL_DICTIONARY /* numbers of values that are elsewhere */
};
/* Where something is in a batch, or how much of it there is. */
struct arrow_counts {
	uint32_t nodes, buffers;
	uint32_t
		views; /* fields that say in each batch how many buffers more */
};
struct arrow_cell {
	enum arrow_cell_kind kind;
	char *name;     /* of a member of a structure */
	uint32_t size;  /* INT to FIXED, DICTIONARY: bytes */
	bool is_signed; /* DICTIONARY */
	bool wide;      /* BYTES, TEXT, LIST: offsets of 8 bytes; */
	bool view;      /* or pairs of them and lengths (LIST), or views */
	bool decimal;   /* FIXED: an integer, to be divided by 10^scale */
	int64_t scale;
	uint64_t per;
	struct arrow_counts at;   /* its node, its first buffer; before it */
	struct arrow_cell *child; /* members, items */
	uint32_t n;
	struct arrow_cell *values; /* DICTIONARY: counted from 0 on; */
	struct arrow_counts all;   /* of a batch of those */
	int64_t id;
};
/* What there may be yet. */
struct arrow_cell_limits {
	uint64_t fields, bytes; /* of names */
	int64_t version;
};
/* Buffers of a field itself, by its type; views are counted. */
unsigned arrow_buffers_of(uint64_t type, const struct flat_table *of,
			  int64_t version, struct arrow_counts *c);
/* Of a field that is known to be sound, and lies at *at, which moves behind it.  0, 1: not
 * shown, and *why says so (static), -EBADMSG, -ENOMEM.  In any case arrow_cell_done. */
int arrow_cell_read(struct arrow_cell *c, const struct flat_table *field,
		    struct arrow_counts *at, struct arrow_cell_limits *left,
		    const char **why);
void arrow_cell_done(struct arrow_cell *c);
/* "list of string", "structure of 2 fields": at most `n` bytes with their NUL. */
void arrow_cell_describe(const struct arrow_cell *c, char *buf, size_t n);
/* Files as Hugging Face keeps them, {bytes, path}: the member that has the bytes. */
const struct arrow_cell *arrow_cell_file(const struct arrow_cell *c);
/* The cell with what a row is: of a dictionary its values. */
const struct arrow_cell *arrow_cell_value(const struct arrow_cell *c);

#endif
