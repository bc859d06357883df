/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors of the .npy files in the root of a directory or archive. */
#ifndef FORMATS_ARCHIVE_NPY_VIEWS_H
#define FORMATS_ARCHIVE_NPY_VIEWS_H

#include "formats/source.h"
#include "members/member_files.h"

/* Beside `files`, which are those of table `m` under record `root`, and are or will be given
 * to a->dir.  Nothing where there is no .npy, or a member of that name.  -ENOMEM. */
int npy_views_add(const struct source_args *a, const struct members *m,
		  const struct volume *volumes, unsigned n, uint64_t root,
		  struct files *files, struct error *err);

#endif
