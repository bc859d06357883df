/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors in directories that hold tensors. */
#ifndef FORMATS_BUNDLES_H
#define FORMATS_BUNDLES_H

#include "tree/tree.h"

/* Each directory of a tree that was just finished that holds tensors which the format has
 * types for gets a tensor.safetensors of them, found by name.  -ENOMEM. */
int bundles_add(struct tree *t, struct error *err);

/* Are these one? */
bool bundle_files_are(const struct files *f);

/* Tensors that somebody found, and how they are called. */
struct bundle;
struct bundle_found {
	struct bundle *bundle;
	void (*free)(struct bundle_found *f); /* all but the bundle */
};
/*
 * A tensor.safetensors of what `find` finds when somebody first asks for its size.  May block,
 * and be called by several threads at a time: one result is kept.  NULL: see err.  `ctx`
 * (malloc'ed) is owned, also after a failure.  NULL: no memory.
 */
struct files *bundle_files_late(struct bundle_found *(*find)(void *ctx,
							     struct error *err),
				void *ctx, int64_t mtime);

#endif
