/* SPDX-License-Identifier: BSD-2-Clause */
/* The file tensor.safetensors in directories that hold tensors. */
#ifndef FORMATS_BUNDLES_H
#define FORMATS_BUNDLES_H

#include "tree/tree.h"

/* Add a tensor.safetensors, found by name but not listed, to each directory of a just
 * finished tree that holds tensors of types that safetensors has.  Return 0 or
 * -ENOMEM. */
int bundles_add(struct tree *t, struct error *err);

/* Return true if `f` are the files of a tensor.safetensors. */
bool bundle_files_are(const struct files *f);

/* A bundle whose tensors were found when it was first needed. */
struct bundle;
struct bundle_found {
	struct bundle *bundle;
	void (*free)(struct bundle_found *f); /* frees all but the bundle */
};
/*
 * Make a tensor.safetensors of the tensors that `find` returns when its size is first
 * needed.  `find` may block, and several threads may call it at once: one result is kept.
 * It returns NULL with an error.  `ctx` (malloc'ed) is owned, also after a failure.
 * Return NULL when out of memory.
 */
struct files *bundle_files_late(struct bundle_found *(*find)(void *ctx,
							     struct error *err),
				void *ctx, int64_t mtime);

#endif
