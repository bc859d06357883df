/* SPDX-License-Identifier: BSD-2-Clause */
/* The footer of a Parquet file: its columns, and where their pages are. */
#ifndef FORMATS_PARQUET_META_H
#define FORMATS_PARQUET_META_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "tensor/dtype.h"

/* Types, encodings and codecs as parquet.thrift numbers them. */
enum {
	PARQUET_BOOLEAN,
	PARQUET_INT32,
	PARQUET_INT64,
	PARQUET_INT96,
	PARQUET_FLOAT,
	PARQUET_DOUBLE,
	PARQUET_BYTES,
	PARQUET_FIXED
};
enum {
	PARQUET_PLAIN = 0,
	PARQUET_PLAIN_DICTIONARY = 2,
	PARQUET_RLE = 3,
	PARQUET_BIT_PACKED = 4,
	PARQUET_DELTA = 5, /* numbers; the next two encode lengths so */
	PARQUET_DELTA_LENGTHS = 6,
	PARQUET_DELTA_BYTES = 7,
	PARQUET_RLE_DICTIONARY = 8,
	PARQUET_SPLIT = 9
};
#define PARQUET_GZIP 2 /* a number of enum CompressionCodec */
/* A column chunk: the pages of a column in one row group, one after the other. */
struct parquet_index;
struct parquet_chunk {
	/* pos, size: in the file, in bytes; a list column has more values than rows. */
	uint64_t rows, values, pos, size;
	int64_t codec;
	_Atomic(struct parquet_index *) index; /* NULL until it is needed */
};
struct parquet_column {
	char *name;
	const char *why_not; /* why it cannot be shown, or NULL */
	char note[72];       /* what the values mean, or "" */
	int64_t type;
	uint32_t width;     /* bytes of a stored value; 0: they vary */
	struct dtype dtype; /* of a value as it is served */
	/* text: rows vary in length; optional: rows may be null. */
	bool text, optional;
	bool nulls; /* some rows are null */
	/* In JSON the integer is divided by 10^scale. */
	bool decimal;
	int64_t scale;
	bool hidden; /* not shown: another column shows the whole element */
	/* Read with its levels: see formats/parquet/record.c. */
	bool nested;
	/* Largest definition level; largest repetition level. */
	uint8_t max_levels, max_repeats;
	/* The definition level of a value that is present. */
	uint8_t levels;
	/* RAGGED: the definition level of a list item, which may be null. */
	uint8_t list_level;
	struct dtype_field item; /* RAGGED: the type of an item */
	/* Number of the element below the root that it belongs to. */
	uint32_t top;
	char member; /* its part of a file {bytes, path}: 'b', 'p', or 0 */
	/* One for each row group that has rows. */
	struct parquet_chunk *chunks;
	uint32_t n_chunks;
};
/* An element of the schema.  Elements are in depth-first order, each before its
 * children. */
struct parquet_node {
	char *name;
	/* Number of children; index of the node behind all of them. */
	uint32_t children, next;
	/* Its first column; how many columns it has. */
	uint32_t leaf, leaves;
	uint8_t repetition; /* 0: required, 1: optional, 2: repeated */
	/* Definition and repetition level of a present value. */
	uint8_t levels, repeats;
	bool is_list, is_map;
};
struct parquet_meta {
	struct parquet_column *at;
	uint32_t n;
	struct parquet_node *nodes; /* all elements but the root */
	uint32_t n_nodes;
	uint64_t rows;
	/* room: allocated columns; groups: row groups that have rows. */
	uint32_t room, groups;
	json_t *attributes; /* an object whose values are strings */
};
/* Read a footer of `n` bytes; `file` is the size of the file in bytes.  Returns 0,
 * -EBADMSG, -ENOTSUP or -ENOMEM; the sentence does not name the file. */
int parquet_meta_read(const void *data, size_t n, uint64_t file,
		      struct parquet_meta *out, struct error *err);
/* Average bytes of a row by the footer, in the row group where the average is
 * largest. */
uint64_t parquet_column_mean(const struct parquet_column *c);
/* Show the strings of a column as files of their bytes. */
void parquet_column_as_blob(struct parquet_column *c);
void parquet_meta_free(struct parquet_meta *m);

#endif
