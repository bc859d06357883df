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
	uint32_t header;       /* bytes of the header itself */
	uint32_t stored, size; /* of what follows it, compressed and not */
	uint32_t values;
	int64_t encoding, levels_encoding, repeats_encoding;
	uint32_t levels;  /* DATA_2: bytes in front that are not compressed; */
	uint32_t repeats; /* of these: repetition levels, which come first */
	int64_t rows;     /* DATA_2; -1: it does not say */
	uint32_t nulls;   /* DATA_2 */
	bool packed;      /* DATA_2: false: not compressed after all */
	bool has_crc;
	uint32_t crc; /* of what follows the header, as stored */
};
/* -EBADMSG: damaged, or it goes on after `n` bytes. */
int parquet_page_read(const void *data, size_t n, struct parquet_page *out,
		      struct error *err);

struct parquet_dictionary {
	unsigned char *data; /* of the page, decoded */
	uint32_t n;
	uint32_t *at; /* text: where each begins, behind its length */
};
/* Of a decoded dictionary page, whose memory it takes in any case. */
int parquet_dictionary_read(const struct parquet_column *c,
			    const struct parquet_page *p, unsigned char *data,
			    size_t size, struct parquet_dictionary *out,
			    struct error *err);
void parquet_dictionary_free(struct parquet_dictionary *d);

/*
 * The values of a data page: `data` is all of it, decoded (levels too).  `put` gets one
 * text, or any number of values of c->width bytes.  -EBADMSG, -ENOTSUP; there are
 * exactly p->values when it succeeds.
 */
typedef void parquet_put(void *ctx, const unsigned char *v, size_t len);
int parquet_page_values(const struct parquet_column *c,
			const struct parquet_page *p, const unsigned char *data,
			size_t size, const struct parquet_dictionary *d,
			parquet_put *put, void *ctx, struct error *err);

/*
 * The same of a column that is read with its levels, of which `entry` gets each pair in
 * order: how deep a list goes on (0: another row), how much there is, and the value as it
 * is served; NULL where that is not c->max_levels.  -errno or 0.
 */
struct parquet_entries {
	int (*entry)(void *ctx, unsigned again, unsigned level,
		     const unsigned char *v, size_t len);
	void *ctx;
};
/* A page decoded: kept for who wants other rows of it. */
struct parquet_decoded {
	struct parquet_runs repeats, levels; /* from the first entry on */
	unsigned char *runs;                 /* the bytes of both */
	uint32_t n;                          /* entries */
	size_t size;         /* of a value as it is served; 0: they vary */
	unsigned char *data; /* those that are there, one after the other */
	size_t *ends;        /* where each ends, if they vary */
	size_t bytes;        /* that all of this takes */
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
/* What a value of such a column is. */
const struct dtype *parquet_value_type(const struct parquet_column *c);

#endif
