/* SPDX-License-Identifier: BSD-2-Clause */
/* All tensors of a tree as one Zarr hierarchy. */
#ifndef VIEWS_ZARR_STORE_H
#define VIEWS_ZARR_STORE_H

#include "tree/tree.h"

/* Make the groups and arrays of Zarr v2 or v3, for a directory of the tree itself.  It
 * lists nothing before it is bound.  With `found_only` the directory does not exist if
 * the tree has no arrays.  Returns NULL if memory ran out. */
struct files *zarr_store_new(bool v3, bool found_only);
/* Bind the files to a finished tree.  Call this once, before the tree is served. */
void zarr_store_bind(struct files *f, const struct tree *t);
/* Give axes without names such names that the arrays of a group fit together.  Call
 * this once, too.  Returns 0 or -ENOMEM. */
int zarr_name_axes(const struct tree *t);
/* Return true if the files are such a hierarchy. */
bool zarr_store_are(const struct files *f);

#endif
