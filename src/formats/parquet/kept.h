/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of Parquet pages, and dictionaries, that were decoded not long ago. */
#ifndef FORMATS_PARQUET_KEPT_H
#define FORMATS_PARQUET_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/parquet/page.h"

/*
 * Texts are asked for a few at a time, and a page has many, of which none can be found
 * without those before it; a dictionary is needed for each page.  A few are kept, of all
 * files together, 64 MiB of them.
 */
struct parquet_kept;
/* Page `page` of the chunk that has the index `of`; NULL: it is not kept.  Unchanged
 * until it is released. */
const struct parquet_kept *parquet_kept_get(const void *of, size_t page);
void parquet_kept_release(const struct parquet_kept *k);
/* Texts [from, to) of it. */
void parquet_kept_put(const struct parquet_kept *k, uint64_t from, uint64_t to,
		      void (*put)(void *ctx, const unsigned char *v,
				  size_t len),
		      void *ctx);

/* The dictionary of the chunk that has the index `of`, which is borrowed until *k is released;
 * NULL: it is not kept. */
const struct parquet_kept *
parquet_kept_dictionary(const void *of, struct parquet_dictionary *out);
/* Keep one of so many decoded bytes, which is borrowed from then on.  NULL: it is too large, and
 * stays the caller's. */
const struct parquet_kept *
parquet_kept_put_dictionary(const void *of, const struct parquet_dictionary *d,
			    size_t bytes);

/* The same for pages that are read with their levels. */
const struct parquet_kept *
parquet_kept_decoded(const void *of, size_t page,
		     const struct parquet_decoded **out);
const struct parquet_kept *
parquet_kept_put_decoded(const void *of, size_t page,
			 const struct parquet_decoded *d);

/* One in the making, which all texts of the page are added to, as many as `values`, of about so
 * many bytes; NULL: no memory. */
struct parquet_kept *parquet_kept_new(const void *of, size_t page,
				      uint32_t values, size_t bytes);
/* `v` may be NULL.  What is too much is not kept. */
void parquet_kept_add(struct parquet_kept *k, const unsigned char *v,
		      size_t len);
/* Finished, or given up.  `k` may be NULL. */
void parquet_kept_end(struct parquet_kept *k, bool finished);
/* All pages of an index that is about to be freed. */
void parquet_kept_forget(const void *of);

#endif
