/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of a Parquet column: their headers, and the values in them. */
#ifndef FORMATS_PARQUET_PAGE_H
#define FORMATS_PARQUET_PAGE_H

#include "formats/parquet/meta.h"
#include "formats/parquet/runs.h"

enum {
	PARQUET_PAGE_DATA,
	PARQUET_PAGE_INDEX,
	PARQUET_PAGE_DICTIONARY,
	PARQUET_PAGE_DATA_2
};
struct parquet_page {
	int64_t type;
	uint32_t header; /* length of the header itself, in bytes */
	/* Bytes that follow the header, compressed and decoded. */
	uint32_t stored, size;
	uint32_t values;
	int64_t encoding, levels_encoding, repeats_encoding;
	/* DATA_2: bytes of levels, which are first and not compressed. */
	uint32_t levels;
	/* How many of them are repetition levels, which come first. */
	uint32_t repeats;
	int64_t rows;   /* DATA_2; -1: the header does not tell */
	uint32_t nulls; /* DATA_2: rows without a value */
	bool packed;    /* DATA_2: whether the values are compressed */
	bool has_crc;
	uint32_t crc; /* of the stored bytes behind the header */
};
/* Read a page header from the `n` bytes at `data`.  Returns 0, or -EBADMSG if it is
 * damaged or longer than `n` bytes. */
int parquet_page_read(const void *data, size_t n, struct parquet_page *out,
		      struct error *err);

struct parquet_dictionary {
	unsigned char *data; /* the decoded page; owned */
	uint32_t n;
	/* text: where each value begins, behind its length; owned. */
	uint32_t *at;
};
/* Read a decoded dictionary page of `size` bytes.  Takes ownership of `data`
 * (malloc'ed), also when it fails: the caller frees *out in any case.  Returns 0,
 * -EBADMSG or -ENOMEM. */
int parquet_dictionary_read(const struct parquet_column *c,
			    const struct parquet_page *p, unsigned char *data,
			    size_t size, struct parquet_dictionary *out,
			    struct error *err);
void parquet_dictionary_free(struct parquet_dictionary *d);

/*
 * Hand the values of a data page to `put`; `data` is the whole decoded page, levels
 * included.  `put` gets one text, or any number of values of c->width bytes; `v` is NULL
 * for a row without a value.  Returns 0, having handed on exactly p->values values, or
 * -EBADMSG, -ENOTSUP or -ENOMEM.
 */
typedef void parquet_put(void *ctx, const unsigned char *v, size_t len);
int parquet_page_values(const struct parquet_column *c,
			const struct parquet_page *p, const unsigned char *data,
			size_t size, const struct parquet_dictionary *d,
			parquet_put *put, void *ctx, struct error *err);

/*
 * How a column that is read with its levels is handed on: `entry` gets each entry in
 * order.  `again` is the repetition level: the depth of the list that goes on, 0 for a
 * new row.  `level` is the definition level.  `v` is the value as it is served, NULL if
 * `level` is less than c->max_levels.  `entry` returns 0 or -errno, which ends the
 * reading.
 */
struct parquet_entries {
	int (*entry)(void *ctx, unsigned again, unsigned level,
		     const unsigned char *v, size_t len);
	void *ctx;
};
/* A decoded page, which can be kept for reads of other rows. */
struct parquet_decoded {
	/* Both from the first entry on. */
	struct parquet_runs repeats, levels;
	unsigned char *runs; /* the bytes of both; owned */
	uint32_t n;          /* number of entries */
	/* Bytes of a value as it is served; 0: they vary. */
	size_t size;
	/* The values that are present, one after the other. */
	unsigned char *data;
	size_t *ends; /* where each value ends, if they vary */
	size_t bytes; /* how many bytes all of this takes */
};
int parquet_page_decode(const struct parquet_column *c,
			const struct parquet_page *head,
			const unsigned char *data, size_t size,
			const struct parquet_dictionary *d,
			struct parquet_decoded *out, struct error *err);
int parquet_decoded_put(const struct parquet_column *c,
			const struct parquet_decoded *g,
			const struct parquet_entries *to, struct error *err);
void parquet_decoded_free(struct parquet_decoded *g);
/* Return the type of one value of the column: of an item, if it is a list. */
const struct dtype *parquet_value_type(const struct parquet_column *c);

#endif
