/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads rows of a Parquet column from the pages that have them. */
#ifndef FORMATS_PARQUET_READ_H
#define FORMATS_PARQUET_READ_H

#include "formats/columns/unpack.h"
#include "formats/parquet/index.h"
#include "formats/parquet/kept.h"

/* The state of reading values [first, end) of a chunk; the next page begins with
 * `row`. */
struct parquet_reading {
	const struct arrays *s;
	const struct parquet_column *c;
	struct parquet_chunk *chunk;
	uint64_t first, end, row;
	parquet_put *put;
	void *ctx;
	struct parquet_dictionary dictionary; /* borrowed from `kept` */
	/* NULL: the dictionary is owned. */
	const struct parquet_kept *kept;
	struct error *err;
};
/* Release or free the dictionary. */
void parquet_reading_end(struct parquet_reading *r);
enum unpack parquet_unpack(int64_t codec);
/* Set *out (malloc'ed, owned by the caller) to the decoded page, p->size bytes.  Blocks.
 * Returns 0, -EBADMSG, -ENOMEM, or an error of reading. */
int parquet_read_body(const struct parquet_reading *r,
		      const struct parquet_page *p, uint64_t pos,
		      unsigned char **out);
int parquet_read_dictionary(struct parquet_reading *r,
			    const struct parquet_index *x);

/* Hand rows [first, first + n) of a part to `put`, as parquet_page_values does;
 * parquet_read_lists hands on each list as the bytes of its numbers.  Blocks.  Returns 0
 * or -errno. */
int parquet_read(struct array *a, uint32_t part, uint64_t first, uint64_t n,
		 parquet_put *put, void *ctx, struct error *err);
int parquet_read_lists(struct array *a, uint32_t part, uint64_t first,
		       uint64_t n, parquet_put *put, void *ctx,
		       struct error *err);
/* Hand all entries of rows [first, first + n) of a part to `to`. */
int parquet_read_entries(const struct arrays *s, const struct parquet_column *c,
			 uint32_t part, uint64_t first, uint64_t n,
			 const struct parquet_entries *to, struct error *err);

/* Numbers that are copied to `out`; those of 8 and 16 bits are stored as 32 bits.
 * `left`: bytes that follow; `odd`: a number did not fit. */
struct parquet_making {
	unsigned char *out;
	size_t left, width, size;
	bool is_signed, odd;
};
/* A parquet_put whose ctx is a struct parquet_making. */
void parquet_put_made(void *ctx, const unsigned char *v, size_t len);

#endif
