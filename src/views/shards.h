/* SPDX-License-Identifier: BSD-2-Clause */
/* What shards of samples of equal size and of different sizes have in common. */
#ifndef VIEWS_SHARDS_H
#define VIEWS_SHARDS_H

#include "shards/names.h"
#include "shards/ustar.h"
#include "views/classes.h"
#include "views/view.h"

/* Bytes for the path of a sample in a shard. */
#define SHARDS_PATH_ROOM (RANK_MAX * 21 + 24)
/* Bytes that a .cls takes in a shard, with its header. */
#define SHARDS_LABEL_BYTES (2 * USTAR_BLOCK)

/* How the names of samples in a shard are made. */
struct shards_keys {
	/* digits of each index; number of indices */
	unsigned width[RANK_MAX], k;
};
/* Set *x for samples that are counted by the first `axes` axes.  Return the number of
 * samples; 0 if there are none or too many. */
uint64_t shards_keys_init(struct shards_keys *x, const struct tensor *t,
			  unsigned axes);
/* Write the path of a sample in a shard, with `suffix` behind it. */
void shards_sample_path(const struct tensor *t, const struct shards_keys *x,
			uint64_t sample, const char *suffix, char *buf,
			size_t room);
/* Return the tar entry of a file of `size` bytes, "000042.npy", of tensor `t`; `path`
 * is borrowed. */
struct ustar shards_member(const struct tensor *t, uint64_t size,
			   const char *path);
/* Set `name` to the NAME of NAME-000000.tar. */
void shards_name(const struct tensor *t, char name[SHARDS_NAME_MOST + 1]);
/* Note in info.json that there are fewer samples (`n`) than shards. */
void shards_note_too_few(struct tensor *t, uint64_t n);

/* Append `n` zeros to the plan. */
void shards_map_zeros(struct plan *plan, uint64_t n);
/* Append a tar header from byte `off` of it on. */
void shards_map_header(const struct tensor *t, const struct shards_keys *x,
		       uint64_t sample, const char *suffix, uint64_t size,
		       uint64_t off, struct plan *plan);
/* Append a .cls with its header, SHARDS_LABEL_BYTES in all, from byte `off` on.  Return
 * 0, or -EIO if classes_index was not called before. */
int shards_map_label(const struct tensor *t, const struct shards_keys *x,
		     uint64_t sample, uint64_t off, struct plan *plan,
		     struct error *err);

#endif
