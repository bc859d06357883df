/* SPDX-License-Identifier: BSD-2-Clause */
/* All tensors of a tree as one Zarr hierarchy. */
#ifndef VIEWS_ZARR_STORE_H
#define VIEWS_ZARR_STORE_H

#include "tree/tree.h"

/* Groups and arrays of Zarr v2 or v3, for a directory of the tree itself, which lists
 * nothing before it is bound.  `found_only`: where there are no arrays there
 * is no such directory.  NULL: no memory. */
struct files *zarr_store_new(bool v3, bool found_only);
/* Once, when the tree is finished and nobody reads yet. */
void zarr_store_bind(struct files *f, const struct tree *t);
/* Once as well: see to it that axes without names get such as fit together within a
 * group.  -ENOMEM. */
int zarr_name_axes(const struct tree *t);
/* Is it one of these? */
bool zarr_files_are(const struct files *f);

#endif
