/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how many bytes members take in a tar before they are written. */
#ifndef SHARDS_SIZER_H
#define SHARDS_SIZER_H

#include "base/error.h"
#include "shards/unit.h"

struct shards_sizer;
int shards_sizer_new(struct shards_sizer **out, bool numeric_owner,
		     struct error *err);
/* Set *size to the bytes that a regular file takes as a member: headers, data,
 * padding.  Returns 0 or -errno. */
int shards_sizer_member(struct shards_sizer *s, const char *path,
			const struct feed_attr *a, uint64_t *size,
			struct error *err);
void shards_sizer_free(struct shards_sizer *s);

#endif
