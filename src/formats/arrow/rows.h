/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of any Arrow type in memory, with the rows of the types in them. */
#ifndef FORMATS_ARROW_ROWS_H
#define FORMATS_ARROW_ROWS_H

#include "formats/arrow/private.h"
#include "formats/columns/jsonline.h"

/* Some rows of a cell.  The caller zeroes it before it is loaded. */
struct arrow_rows {
	const struct arrow_cell *cell;
	uint64_t n;
	/* In a piece of a dictionary: the number of its first value. */
	uint64_t start;
	unsigned char *valid; /* validity bits; NULL: no row is null */
	/* The first row's bit in `valid`, and in `data` of BOOL. */
	unsigned bit;
	unsigned char *data;
	/* LIST: items of each row, in `child`; DICTIONARY: `begin` is the number of its
	 * value. */
	uint64_t *begin, *len;
	/* BYTES, TEXT: where each row's bytes are: in `data`, or for long views in
	 * `more` */
	const unsigned char **where;
	unsigned char **more;
	uint32_t n_more;
	/* Members of a structure, items of a list, pieces of a dictionary. */
	struct arrow_rows *child;
	uint32_t n_child;
};
/* The state of loading rows for one request. */
struct arrow_reading {
	const struct arrow *s;
	const struct arrow_kept *batch;
	/* The dictionaries are those of this time: see arrow_kept. */
	uint64_t time;
	uint64_t left; /* bytes that may still be allocated or decoded */
	struct error *err;
};
/* Load rows [first, first + n) of cell `c` of r->batch.  Of buffers that are not
 * compressed only the needed bytes are read.  Every offset, number and length has been
 * checked when it returns 0.  Errors: -EBADMSG, -ENOTSUP, -ENOMEM, and those of reading.
 * The caller calls arrow_rows_free in any case. */
int arrow_rows_load(struct arrow_reading *r, const struct arrow_cell *c,
		    uint64_t first, uint64_t n, struct arrow_rows *out);
void arrow_rows_free(struct arrow_rows *r);
/* Set *out (malloc'ed, owned by the caller) to the decoded bytes [from, from + n) of
 * buffer `i` of a cell. */
int arrow_rows_fetch(struct arrow_reading *r, const struct arrow_cell *c,
		     uint32_t i, uint64_t from, uint64_t n,
		     unsigned char **out);
/* Take `n` allocated and `work` decoded bytes from what r->left still allows. */
void arrow_rows_charge(struct arrow_reading *r, uint64_t n, uint64_t work);
/* Load the rows of a cell of Arrow views, from row `first` on; x->n and x->valid are set
 * already.  It is in rows_views.c. */
int arrow_views_load(struct arrow_reading *r, struct arrow_rows *x,
		     uint64_t first);
/* Set *len to the length of one row of a cell of views; only its view is read. */
int arrow_view_length(struct arrow_reading *r, const struct arrow_cell *c,
		      uint64_t row, uint64_t *len);

bool arrow_rows_is_null(const struct arrow_rows *r, uint64_t i);
/* Return the rows that hold the value of row *i, and set *i to the value's number there.
 * For a dictionary these are the rows of its values, else `r` itself. */
const struct arrow_rows *arrow_rows_value(const struct arrow_rows *r,
					  uint64_t *i);
/* For BYTES, TEXT and types of a fixed size: return where the bytes of row `i` are, and
 * set *len; NULL if it is null. */
const unsigned char *arrow_rows_bytes(const struct arrow_rows *r, uint64_t i,
				      uint64_t *len);
void arrow_rows_put(const struct arrow_rows *r, uint64_t i,
		    struct jsonline *out);

#endif
