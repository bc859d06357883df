/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of shards that are shown: NAME-000000.tar, and the index NAME-index.json. */
#ifndef SHARDS_NAMES_H
#define SHARDS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The most shards that are shown: each is a line of the index. */
#define SHARDS_MOST UINT64_C(1000000)
#define SHARDS_NAME_MOST 200

/* Make NAME from the name of a source: the first `len` bytes of `base`, or "shards" if
 * shells, URLs or brace expansion would misread these. */
void shards_name_from_source(char out[SHARDS_NAME_MOST + 1], const char *base,
			     size_t len);
/* Write the name of file k of `n` shards (k < n) or of their index (k == n).  Names are
 * in the order of k. */
void shards_file_name(const char *name, uint64_t k, uint64_t n, char *buf,
		      size_t room);
/* Set *k to the number of the file that is called `file`.  Returns 0 or -ENOENT. */
int shards_file_find(const char *name, uint64_t n, const char *file,
		     uint64_t *k);

/* The numbers of a shard in the index; `size` is in bytes. */
struct shards_line {
	uint64_t samples, files, size;
};
/*
 * Return the index in the form that wids reads, *len bytes that the caller frees; NULL
 * if memory ran out.  It has no checksums, because all shards would have to be read for
 * them.
 */
char *shards_index_text(const char *name, uint64_t n,
			void (*line)(const void *ctx, uint64_t k,
				     struct shards_line *out),
			const void *ctx, size_t *len);

#endif
