/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards that are shown: NAME-000000.tar, and their index NAME-index.json. */
#ifndef SHARDS_NAMES_H
#define SHARDS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* So many at most: each is a line of the index. */
#define SHARDS_MOST UINT64_C(1000000)
#define SHARDS_NAME_MOST 200

/* NAME, of what they are of: the first `len` bytes of `base`, or "shards" where shells, URLs
 * and brace expansion would have another idea of these. */
void shards_name_made(char out[SHARDS_NAME_MOST + 1], const char *base,
		      size_t len);
/* File k of `n` shards (k < n), or of their index (k == n); in order of names. */
void shards_file_name(const char *name, uint64_t k, uint64_t n, char *buf,
		      size_t room);
/* The number of the file that is called so; -ENOENT. */
int shards_file_find(const char *name, uint64_t n, const char *file,
		     uint64_t *k);

/* What the index says of shard k. */
struct shards_line {
	uint64_t samples, files, size;
};
/*
 * The index as wids reads it, without checksums, for which all would have to be read;
 * malloc'ed, *len bytes; NULL: no memory.
 */
char *shards_index_text(const char *name, uint64_t n,
			void (*line)(const void *ctx, uint64_t k,
				     struct shards_line *out),
			const void *ctx, size_t *len);

#endif
