/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of a column of a Parquet file, from the pages that they are in. */
#ifndef FORMATS_PARQUET_READ_H
#define FORMATS_PARQUET_READ_H

#include "formats/columns/unpack.h"
#include "formats/parquet/index.h"
#include "formats/parquet/kept.h"

/* Values [first, end) of a chunk are wanted; the next page begins with `row`. */
struct parquet_reading {
	const struct arrays *s;
	const struct parquet_column *c;
	struct parquet_chunk *chunk;
	uint64_t first, end, row;
	parquet_put *put;
	void *ctx;
	struct parquet_dictionary dictionary; /* borrowed of: */
	const struct parquet_kept *kept;      /* NULL: it is ours */
	struct error *err;
};
/* Let go what it has. */
void parquet_reading_end(struct parquet_reading *r);
enum unpack parquet_unpack(int64_t codec);
/* All of a page, decoded (malloc'ed): page->size bytes. */
int parquet_read_body(const struct parquet_reading *r,
		      const struct parquet_page *p, uint64_t pos,
		      unsigned char **out);
int parquet_read_dictionary(struct parquet_reading *r,
			    const struct parquet_index *x);

/* Rows [first, first + n) of a part, which `put` gets as parquet_page_values has them;
 * lists: each as the numbers in it. */
int parquet_read(struct array *a, uint32_t part, uint64_t first, uint64_t n,
		 parquet_put *put, void *ctx, struct error *err);
int parquet_read_lists(struct array *a, uint32_t part, uint64_t first,
		       uint64_t n, parquet_put *put, void *ctx,
		       struct error *err);
/* Rows [first, first + n) of a part with their levels, of which `to` gets all entries. */
int parquet_read_entries(const struct arrays *s, const struct parquet_column *c,
			 uint32_t part, uint64_t first, uint64_t n,
			 const struct parquet_entries *to, struct error *err);

/* Numbers on their way out; those of 8 and 16 bits are stored as 32. */
struct parquet_making {
	unsigned char *out;
	size_t left, width, size;
	bool is_signed, odd;
};
/* A parquet_put, whose ctx is that. */
void parquet_put_made(void *ctx, const unsigned char *v, size_t len);

#endif
