/* SPDX-License-Identifier: BSD-2-Clause */
/* A cache of decoded Parquet pages and dictionaries. */
#ifndef FORMATS_PARQUET_KEPT_H
#define FORMATS_PARQUET_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/parquet/page.h"

/*
 * Readers ask for a few texts at a time, but a page has many, and none can be found
 * without decoding those before it; a dictionary is needed for each page of its chunk.
 * So those decoded last are kept, for all files together, in 64 MiB.
 */
struct parquet_kept;
/* Return page `page` of the chunk with the index `of`, or NULL if it is not kept.  It
 * does not change, and stays until parquet_kept_release. */
const struct parquet_kept *parquet_kept_get(const void *of, size_t page);
void parquet_kept_release(const struct parquet_kept *k);
/* Hand texts [from, to) of the page to `put`. */
void parquet_kept_put(const struct parquet_kept *k, uint64_t from, uint64_t to,
		      void (*put)(void *ctx, const unsigned char *v,
				  size_t len),
		      void *ctx);

/* Set *out to the dictionary of the chunk with the index `of`.  It is borrowed: valid
 * until the returned entry is released.  Returns NULL if it is not kept. */
const struct parquet_kept *
parquet_kept_dictionary(const void *of, struct parquet_dictionary *out);
/* Keep a dictionary, which has `bytes` decoded bytes.  The cache becomes its owner, and
 * the caller borrows it until the returned entry is released.  Returns NULL if it is too
 * large or memory is short; the caller remains the owner then. */
const struct parquet_kept *
parquet_kept_put_dictionary(const void *of, const struct parquet_dictionary *d,
			    size_t bytes);

/* Get and keep pages that are read with their levels: as for dictionaries. */
const struct parquet_kept *
parquet_kept_decoded(const void *of, size_t page,
		     const struct parquet_decoded **out);
const struct parquet_kept *
parquet_kept_put_decoded(const void *of, size_t page,
			 const struct parquet_decoded *d);

/* Begin an entry for a page of `values` texts with about `bytes` bytes; the caller adds
 * all texts of the page.  Returns NULL if memory is short. */
struct parquet_kept *parquet_kept_new(const void *of, size_t page,
				      uint32_t values, size_t bytes);
/* Add a text; `v` is NULL for a missing one.  If the page gets too large, it will not be
 * kept. */
void parquet_kept_add(struct parquet_kept *k, const unsigned char *v,
		      size_t len);
/* End an entry: keep it if `finished`, else free it.  `k` may be NULL. */
void parquet_kept_end(struct parquet_kept *k, bool finished);
/* Free all entries of an index that is about to be freed; no read of it may be
 * running. */
void parquet_kept_forget(const void *of);

#endif
