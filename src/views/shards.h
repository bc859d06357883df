/* SPDX-License-Identifier: BSD-2-Clause */
/* What shards of samples that are all the same, and of others, have in common. */
#ifndef VIEWS_SHARDS_H
#define VIEWS_SHARDS_H

#include "shards/names.h"
#include "shards/ustar.h"
#include "views/classes.h"
#include "views/view.h"

/* Room for the indices of a sample. */
#define SHARDS_PATH_ROOM (RANK_MAX * 21 + 24)
/* A .cls as a member. */
#define SHARDS_LABEL_BYTES (2 * USTAR_BLOCK)

/* How samples are called. */
struct shards_keys {
	unsigned width[RANK_MAX], k; /* digits of each index */
};
/* Samples by their first `axes` axes, all of them; 0: too many, or none. */
uint64_t shards_keys_init(struct shards_keys *x, const struct tensor *t,
			  unsigned axes);
void shards_sample_path(const struct tensor *t, const struct shards_keys *x,
			uint64_t sample, const char *suffix, char *buf,
			size_t room);
/* "000042.npy", `size` bytes, of tensor t. */
struct ustar shards_member(const struct tensor *t, uint64_t size,
			   const char *path);
/* NAME of NAME-000000.tar. */
void shards_name(const struct tensor *t, char name[SHARDS_NAME_MOST + 1]);
/* Say in info.json that there are fewer samples (n) than shards. */
void shards_note_too_few(struct tensor *t, uint64_t n);

/* Append extents. */
void shards_map_zeros(struct plan *plan, uint64_t n);
/* From byte `off` of the header on. */
void shards_map_header(const struct tensor *t, const struct shards_keys *x,
		       uint64_t sample, const char *suffix, uint64_t size,
		       uint64_t off, struct plan *plan);
/* From byte `off` of a .cls with its header on, SHARDS_LABEL_BYTES in all. */
int shards_map_label(const struct tensor *t, const struct shards_keys *x,
		     uint64_t sample, uint64_t off, struct plan *plan,
		     struct error *err);

#endif
