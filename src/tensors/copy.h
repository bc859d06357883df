/* SPDX-License-Identifier: BSD-2-Clause */
/* A file's bytes, shared or copied by the kernel where it can. */
#ifndef TENSORS_COPY_H
#define TENSORS_COPY_H

#include "base/error.h"

/* All of `from` to the empty file `to`: as a reflink, by copy_file_range, or through
 * memory.  -EINTR: *stop was set; -ENOSPC, ... */
int copy_file(int from, int to, const _Atomic int *stop, struct error *err);

#endif
