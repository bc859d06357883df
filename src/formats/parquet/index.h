/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages of a column chunk: where they are, how many rows to decode at once. */
#ifndef FORMATS_PARQUET_INDEX_H
#define FORMATS_PARQUET_INDEX_H

#include "formats/arrays.h"
#include "formats/parquet/page.h"

/* A data page: the position of its header in the file, and its first row. */
struct parquet_mark {
	uint64_t pos, row;
};
struct parquet_index {
	struct parquet_mark *at; /* the pages that have values */
	size_t n;
	/* Rows of these pages; position behind the last of them. */
	uint64_t rows, end;
	uint64_t limit; /* position where the chunk ends in the file */
	/* Position of the dictionary page's header, or 0. */
	uint64_t dictionary;
	bool checked; /* checksums cover all bytes of all pages */
	/* What is wrong with the number of values in all pages, or NULL. */
	const char *wrong;
	uint64_t piece; /* how many rows are decoded at once */
	/* RAGGED and nested columns only, for which `row` of the pages counts values:
	 * the rows that begin before each page.  UINT64_MAX: not known yet; a reader
	 * that comes by sets it. */
	_Atomic uint64_t *lists;
};
/* Read the header of the page at `pos`, which has at most `left` bytes with its header.
 * Returns 0, -EBADMSG, -ENOMEM, or an error of reading. */
int parquet_head(const struct arrays *s, uint64_t pos, uint64_t left,
		 struct parquet_page *out, struct error *err);
/* Set *out to the index of a chunk, which owns it.  The first call reads all page
 * headers, and the index ends where the first damaged one is.  Blocks.  Returns 0,
 * -ENOMEM, -ENOTSUP, or an error of reading. */
int parquet_index(const struct arrays *s, const struct parquet_column *c,
		  struct parquet_chunk *k, const struct parquet_index **out,
		  struct error *err);
/* Return true if checksums cover all bytes of a column in row group `part`.  Blocks. */
bool parquet_has_checksum(const struct arrays *s,
			  const struct parquet_column *c, uint32_t part);
void parquet_index_free(struct parquet_index *x);
/* Return the number of the page that has row `row`: the last one that does not begin
 * behind it. */
size_t parquet_index_find(const struct parquet_index *x, uint64_t row);

/* Rows of about this many bytes are decoded at once. */
#define PARQUET_PIECE (UINT64_C(16) << 20)

#endif
