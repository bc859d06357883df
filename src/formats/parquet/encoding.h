/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodings of a Parquet page's values, and the levels in front of them. */
#ifndef FORMATS_PARQUET_ENCODING_H
#define FORMATS_PARQUET_ENCODING_H

#include "formats/parquet/page.h"

/* The values of a page, which are behind its levels. */
struct parquet_values {
	const struct parquet_column *c;
	const unsigned char *at;
	size_t n; /* how many bytes the values have */
	uint32_t values;
	parquet_put *put;
	void *ctx;
	struct error *err;
};

/* Set *at and *n to the definition levels, and move `p` behind them; behind those of
 * version 2 `p` is already.  Returns 0, -EBADMSG or -ENOTSUP. */
int parquet_find_levels(struct parquet_values *p,
			const struct parquet_page *head,
			const unsigned char **at, size_t *n);
/* Hand on values of that encoding, not more than p->values.  Returns 0, -EBADMSG,
 * -ENOTSUP or -ENOMEM. */
int parquet_values_put(const struct parquet_values *p, int64_t encoding,
		       const struct parquet_dictionary *d);
/* Each hands on exactly p->values values and returns 0, or -EBADMSG or -ENOMEM. */
int parquet_put_delta(const struct parquet_values *p);
int parquet_put_delta_lengths(const struct parquet_values *p);
int parquet_put_delta_bytes(const struct parquet_values *p);
int parquet_put_split(const struct parquet_values *p);

#endif
