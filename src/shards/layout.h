/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups files to samples, and decides their order and the shard of each. */
#ifndef SHARDS_LAYOUT_H
#define SHARDS_LAYOUT_H

#include "base/error.h"
#include "base/vec.h"
#include "shards/cut.h"

/* Files that are members, all with a key (shards/key.h), in the order in which they are
 * packed. */
struct shards_entries {
	void *ctx;
	uint64_t n;
	/* The directory or source that has them, for messages. */
	const char *top;
	/* Return the path of entry i, valid as long as the entries. */
	const char *(*path)(void *ctx, uint64_t i);
	/* Set *size to the bytes that entry i takes in a tar: headers, data, padding.
	 * Returns 0 or -errno. */
	int (*size)(void *ctx, uint64_t i, uint64_t *size, struct error *err);
};
struct shards_order {
	bool shuffle;
	uint64_t seed; /* the seed of shuffle_order (base/shuffle.h) */
};
struct shard {
	uint64_t first, files; /* a range of `order` */
	uint64_t samples;
	uint64_t size; /* of its tar, uncompressed, in bytes */
};
typedef vec(struct shard) shards_list;
struct shards_layout {
	uint64_t *order; /* numbers of entries, sample by sample; owned */
	uint64_t samples;
	shards_list list;
};
/* Lay out the entries, which come in sorted order (by bytes, but '/' sorts before all
 * others).  Returns 0, -ENODATA if there are no samples, -ENOTSUP if a field is there
 * twice, -EINVAL if there are fewer samples than shards, or another -errno. */
int shards_layout_make(struct shards_layout *out,
		       const struct shards_entries *e,
		       const struct shards_cut *cut,
		       const struct shards_order *order, struct error *err);
void shards_layout_free(struct shards_layout *l);

#endif
