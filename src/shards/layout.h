/* SPDX-License-Identifier: BSD-2-Clause */
/* Files as samples, in which order, and in which shard. */
#ifndef SHARDS_LAYOUT_H
#define SHARDS_LAYOUT_H

#include "base/error.h"
#include "base/vec.h"
#include "shards/cut.h"

/* Files that are members, all of them with a key (shards/key.h), in the order of a pack. */
struct shards_entries {
	void *ctx;
	uint64_t n;
	const char *top; /* where they are, for sentences */
	/* Valid as long as the entries. */
	const char *(*path)(void *ctx, uint64_t i);
	/* Bytes in a tar: headers, data, padding; 0 or -errno. */
	int (*size)(void *ctx, uint64_t i, uint64_t *size, struct error *err);
};
struct shards_order {
	bool shuffle;
	uint64_t seed; /* of shuffle_order (base/shuffle.h) */
};
struct shard {
	uint64_t first, files; /* places in `order` */
	uint64_t samples;
	uint64_t size; /* bytes of its tar, uncompressed */
};
typedef vec(struct shard) shards_list;
struct shards_layout {
	uint64_t *order; /* entries, sample by sample; owned */
	uint64_t samples;
	shards_list list;
};
/* Entries in sorted order (bytes, but '/' is before all others).  -ENODATA: there are no
 * samples; -ENOTSUP: a field that is there twice; -EINVAL: fewer samples than shards. */
int shards_layout_make(struct shards_layout *out,
		       const struct shards_entries *e,
		       const struct shards_cut *cut,
		       const struct shards_order *order, struct error *err);
void shards_layout_free(struct shards_layout *l);

#endif
