/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors: a view of the .npy files in the root of a directory or
 * archive. */
#ifndef FORMATS_ARCHIVE_NPY_VIEWS_H
#define FORMATS_ARCHIVE_NPY_VIEWS_H

#include "formats/source.h"
#include "members/member_files.h"

/* Add tensor.safetensors to directory a->dir, which shows or will show `files`:
 * those of table `m` below record `root`.  Do nothing if there is no .npy or a
 * member has this name.  Return 0 or -ENOMEM. */
int npy_views_add(const struct source_args *a, const struct members *m,
		  const struct volume *volumes, unsigned n, uint64_t root,
		  struct files *files, struct error *err);

#endif
