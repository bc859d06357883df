/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the pages of a Parquet column are, and how many rows are decoded at once. */
#ifndef FORMATS_PARQUET_INDEX_H
#define FORMATS_PARQUET_INDEX_H

#include "formats/arrays.h"
#include "formats/parquet/page.h"

/* A data page: where its header begins, and its first row. */
struct parquet_mark {
	uint64_t pos, row;
};
struct parquet_index {
	struct parquet_mark *at; /* those with values */
	size_t n;
	uint64_t rows, end;  /* behind them: the next row, the next header */
	uint64_t limit;      /* where the chunk ends in the file */
	uint64_t dictionary; /* its header, or 0 */
	bool checked;        /* checksums cover all pages */
	const char *wrong;   /* of the number of values in all pages, or NULL */
	uint64_t piece;      /* rows that are decoded at once */
	/* RAGGED and nested, where the pages' `row` counts values: the lists that begin before
	 * each page, as far as somebody went; UINT64_MAX: not known. */
	_Atomic uint64_t *lists;
};
/* The header of a page at `pos`, which has at most `left` bytes. */
int parquet_head(const struct arrays *s, uint64_t pos, uint64_t left,
		 struct parquet_page *out, struct error *err);
/* The chunk's, made by looking at all headers when it is first asked for: it ends where
 * the first one is damaged.  -ENOMEM, -ENOTSUP, or what reading says. */
int parquet_index(const struct arrays *s, const struct parquet_column *c,
		  struct parquet_chunk *k, const struct parquet_index **out,
		  struct error *err);
/* Do checksums cover all bytes of a column in row group `part`?  Blocks. */
bool parquet_has_checksum(const struct arrays *s,
			  const struct parquet_column *c, uint32_t part);
void parquet_index_free(struct parquet_index *x);
/* The first page that has rows from `row` on. */
size_t parquet_index_find(const struct parquet_index *x, uint64_t row);

/* Rows of about so many bytes are decoded at once. */
#define PARQUET_PIECE (UINT64_C(16) << 20)

#endif
