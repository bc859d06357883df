/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of a Parquet file that are no array: each row a line of JSON. */
#ifndef FORMATS_PARQUET_RECORD_H
#define FORMATS_PARQUET_RECORD_H

#include "formats/columns/jsonline.h"
#include "formats/parquet/read.h"

/* Some rows of one column with their levels. */
struct parquet_rows {
	const struct parquet_column *c;
	uint8_t *again, *level;
	size_t n, room;
	unsigned char *data; /* values that are there, one after the other; */
	size_t used, data_room;
	size_t *ends; /* where each ends, if they vary */
	size_t values, ends_room;
	size_t at, value; /* the present entry, the next value */
	struct error *err;
};
/* Rows [first, first + n) of a part; parquet_rows_free in any case. */
int parquet_rows_load(const struct arrays *s, const struct parquet_column *c,
		      uint32_t part, uint64_t first, uint64_t n,
		      struct parquet_rows *out, struct error *err);
void parquet_rows_free(struct parquet_rows *r);
/* The next row of the columns of a node, rows[0] being its first; -EBADMSG: they
 * contradict each other. */
int parquet_rows_put(const struct parquet_meta *m, const struct parquet_node *n,
		     struct parquet_rows *rows, struct jsonline *out,
		     struct error *err);
/* What a row is: "list of string". */
void parquet_describe(const struct parquet_meta *m,
		      const struct parquet_node *n, char *buf, size_t size);

/* An array of node `n` below the root; its columns are those of one name.  Kept by the
 * source: `meta`. */
int parquet_record_new(struct arrays *s, struct parquet_meta *meta,
		       const struct parquet_node *n, struct array **out,
		       struct error *err);

#endif
