/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache in front of the shared chunks: loads through them, and gives up mappings. */
#ifndef STORE_SHARING_H
#define STORE_SHARING_H

#include "store/cache.h"
#include "store/shared/shared.h"

struct sharing;
/* Start sharing; all arguments are borrowed.  Starts a thread.  Return 0, or -errno with
 * a sentence. */
int sharing_new(struct sharing **out, struct shared *shared,
		struct cache *cache, struct handles *handles,
		struct error *err);
/* End the thread and free `s`, which may be NULL. */
void sharing_free(struct sharing *s);
/* As cache_get for chunk `c`: `load` makes it with `ctx`, unless it is in the shared
 * store or another process makes it. */
int sharing_get(struct sharing *s, struct chunk_set *set, uint64_t index,
		const struct chunk *c, cache_load_fn *load, void *ctx,
		struct buf **out, struct error *err);

#endif
