/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of a Parquet file that are not arrays: each row is a line of JSON. */
#ifndef FORMATS_PARQUET_RECORD_H
#define FORMATS_PARQUET_RECORD_H

#include "formats/columns/jsonline.h"
#include "formats/parquet/read.h"

/* Some rows of one column, with their levels. */
struct parquet_rows {
	const struct parquet_column *c;
	uint8_t *again, *level;
	size_t n, room;
	/* The values that are present, one after the other. */
	unsigned char *data;
	size_t used, data_room;
	size_t *ends; /* where each value ends, if they vary */
	size_t values, ends_room;
	size_t at, value; /* the current entry, and the next value */
	struct error *err;
};
/* Load rows [first, first + n) of a part.  Returns 0 or -errno; the caller calls
 * parquet_rows_free in any case. */
int parquet_rows_load(const struct arrays *s, const struct parquet_column *c,
		      uint32_t part, uint64_t first, uint64_t n,
		      struct parquet_rows *out, struct error *err);
void parquet_rows_free(struct parquet_rows *r);
/* Write the next row of a node as JSON; rows[0] has its first column.  Returns 0, or
 * -EBADMSG if the columns contradict each other. */
int parquet_rows_put(const struct parquet_meta *m, const struct parquet_node *n,
		     struct parquet_rows *rows, struct jsonline *out,
		     struct error *err);
/* Write what a row is into `buf`, as "list of string". */
void parquet_describe(const struct parquet_meta *m,
		      const struct parquet_node *n, char *buf, size_t size);

/* Make the array of node `n` below the root, whose columns are adjacent.  `meta` belongs
 * to the source and must outlive the array. */
int parquet_record_new(struct arrays *s, struct parquet_meta *meta,
		       const struct parquet_node *n, struct array **out,
		       struct error *err);

#endif
