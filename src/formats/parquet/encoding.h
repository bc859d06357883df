/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodings of a Parquet page's values that are neither plain nor by dictionary. */
#ifndef FORMATS_PARQUET_ENCODING_H
#define FORMATS_PARQUET_ENCODING_H

#include "formats/parquet/page.h"

/* What a page has behind its levels. */
struct parquet_values {
	const struct parquet_column *c;
	const unsigned char *at;
	size_t n; /* bytes of values */
	uint32_t values;
	parquet_put *put;
	void *ctx;
	struct error *err;
};

/* The definition levels, which p goes past; those of version 2 it has passed. */
int parquet_find_levels(struct parquet_values *p,
			const struct parquet_page *head,
			const unsigned char **at, size_t *n);
/* As they are encoded; not more than p->values.  0, -EBADMSG, -ENOTSUP, -ENOMEM. */
int parquet_values_put(const struct parquet_values *p, int64_t encoding,
		       const struct parquet_dictionary *d);
/* Each puts exactly p->values values: 0, -EBADMSG, -ENOMEM. */
int parquet_put_delta(const struct parquet_values *p);
int parquet_put_delta_lengths(const struct parquet_values *p);
int parquet_put_delta_bytes(const struct parquet_values *p);
int parquet_put_split(const struct parquet_values *p);

#endif
