/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of Parquet pages that were decoded not long ago. */
#ifndef SOURCE_PARQUET_KEPT_H
#define SOURCE_PARQUET_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Texts are asked for a few at a time, and a page has many, of which none can be found
 * without those before it.  A few pages are kept, of all files together.
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

/* One in the making, which all texts of the page are added to; NULL: no memory. */
struct parquet_kept *parquet_kept_new(const void *of, size_t page);
/* `v` may be NULL.  What is too much is not kept. */
void parquet_kept_add(struct parquet_kept *k, const unsigned char *v,
		      size_t len);
/* Finished, or given up.  `k` may be NULL. */
void parquet_kept_end(struct parquet_kept *k, bool finished);
/* All pages of an index that is about to be freed. */
void parquet_kept_forget(const void *of);

#endif
