/* SPDX-License-Identifier: BSD-2-Clause */
/* A file's bytes, shared or copied by the kernel where it can. */
#ifndef PACK_HDF5_COPY_H
#define PACK_HDF5_COPY_H

#include "base/error.h"

/* All of `from` to the empty file `to`: as a reflink, by copy_file_range, or through
 * memory.  -EINTR: *stop was set; -ENOSPC, ... */
int copy_file(int from, int to, const _Atomic int *stop, struct error *err);

#endif
