/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of any Arrow type in memory, with all that they consist of. */
#ifndef FORMATS_ARROW_ROWS_H
#define FORMATS_ARROW_ROWS_H

#include "formats/arrow/private.h"
#include "formats/columns/jsonline.h"

/* Some rows of a cell.  Zeroed before they are loaded. */
struct arrow_rows {
	const struct arrow_cell *cell;
	uint64_t n;
	uint64_t start;       /* a piece of a dictionary: its first value */
	unsigned char *valid; /* NULL: none is null; */
	unsigned bit;         /* where in `valid`, and in bits, they begin */
	unsigned char *data;
	uint64_t *begin, *len; /* LIST, DICTIONARY: in the children */
	/* BYTES, TEXT; views are in `data`, or else in: */
	const unsigned char **where;
	unsigned char **more;
	uint32_t n_more;
	struct arrow_rows *child; /* members, items, pieces of a dictionary */
	uint32_t n_child;
};
/* What is read for one request. */
struct arrow_reading {
	const struct arrow *s;
	const struct arrow_kept *batch;
	uint64_t time; /* of which dictionaries are */
	uint64_t left; /* bytes that may be had, or decoded, yet */
	struct error *err;
};
/* Rows [first, first + n) of a cell of r->batch; buffers that are not compressed only as
 * far as they are needed.  Every offset, number and length has been checked then.
 * -EBADMSG, -ENOTSUP, -ENOMEM; arrow_rows_free in any case. */
int arrow_rows_load(struct arrow_reading *r, const struct arrow_cell *c,
		    uint64_t first, uint64_t n, struct arrow_rows *out);
void arrow_rows_free(struct arrow_rows *r);
/* Bytes [from, from + n) of buffer i of a cell, decoded (malloc'ed). */
int arrow_rows_fetch(struct arrow_reading *r, const struct arrow_cell *c,
		     uint32_t i, uint64_t from, uint64_t n,
		     unsigned char **out);
/* So many bytes were had, and so many decoded for them. */
void arrow_rows_charge(struct arrow_reading *r, uint64_t n, uint64_t work);
/* Load the rows of a cell of Arrow views from row `first` on; x->valid is set already.  In
 * formats/arrow/rows_views.c. */
int arrow_views_load(struct arrow_reading *r, struct arrow_rows *x,
		     uint64_t first);
/* The length of one row of such a cell, which alone is read. */
int arrow_view_length(struct arrow_reading *r, const struct arrow_cell *c,
		      uint64_t row, uint64_t *len);

bool arrow_rows_is_null(const struct arrow_rows *r, uint64_t i);
/* What row i is in a dictionary; others are what they are. */
const struct arrow_rows *arrow_rows_value(const struct arrow_rows *r,
					  uint64_t *i);
/* BYTES, TEXT and what has a fixed size: where row i is (a null: NULL). */
const unsigned char *arrow_rows_bytes(const struct arrow_rows *r, uint64_t i,
				      uint64_t *len);
void arrow_rows_put(const struct arrow_rows *r, uint64_t i,
		    struct jsonline *out);

#endif
