/* SPDX-License-Identifier: BSD-2-Clause */
/* What the footer of a Parquet file says: its columns, and where they are. */
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
	PARQUET_DELTA = 5, /* numbers, as are lengths in the next two */
	PARQUET_DELTA_LENGTHS = 6,
	PARQUET_DELTA_BYTES = 7,
	PARQUET_RLE_DICTIONARY = 8,
	PARQUET_SPLIT = 9
};
#define PARQUET_GZIP 2 /* of CompressionCodec */
/* A column in one row group: its pages, one after the other. */
struct parquet_index;
struct parquet_chunk {
	uint64_t rows, values, pos, size; /* values: lists have others */
	int64_t codec;
	_Atomic(struct parquet_index *) index; /* when it was needed */
};
struct parquet_column {
	char *name;
	const char *why_not; /* it cannot be shown, because; or NULL */
	char note[72];       /* what its values mean, or "" */
	int64_t type;
	uint32_t width;      /* bytes of a value as stored; 0: they vary */
	struct dtype dtype;  /* as served */
	bool text, optional; /* its rows vary; some may be null, */
	bool nulls;          /* and are */
	bool decimal;        /* in JSON: to be divided by 10^scale */
	int64_t scale;
	bool hidden; /* another one has what there is to show */
	bool nested; /* read with its levels: formats/parquet/record.c */
	uint8_t max_levels, max_repeats; /* of its definition, of lists */
	uint8_t levels;          /* the definition level of what is there */
	uint8_t list_level;      /* RAGGED: of an element, which may be null; */
	struct dtype_field item; /* what `dtype` is a sequence of */
	uint32_t top; /* element below the root that it belongs to; */
	char member;  /* 'b': bytes, 'p': path of that */
	struct parquet_chunk *chunks; /* of row groups with rows */
	uint32_t n_chunks;
};
/* An element of the schema: they are in order, each before those that are in it. */
struct parquet_node {
	char *name;
	uint32_t children, next; /* how many; what is behind all of them */
	uint32_t leaf, leaves;   /* columns that it consists of */
	uint8_t repetition;      /* 0: one, 1: one or none, 2: any number */
	uint8_t levels, repeats; /* of what is there */
	bool is_list, is_map;
};
struct parquet_meta {
	struct parquet_column *at;
	uint32_t n;
	struct parquet_node *nodes; /* without the root */
	uint32_t n_nodes;
	uint64_t rows;
	uint32_t room, groups; /* groups that have rows */
	json_t *attributes;    /* text by name */
};
/* `file` is its size in bytes.  -EBADMSG, -ENOTSUP, -ENOMEM, and no file in the
 * sentence. */
int parquet_meta_read(const void *data, size_t n, uint64_t file,
		      struct parquet_meta *out, struct error *err);
/* Bytes of a value as far as the footer knows. */
uint64_t parquet_column_mean(const struct parquet_column *c);
/* Strings as files of their bytes. */
void parquet_column_as_blob(struct parquet_column *c);
void parquet_meta_free(struct parquet_meta *m);

#endif
