/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy a file: as a reflink, by the kernel, or through memory. */
#ifndef TENSORS_COPY_H
#define TENSORS_COPY_H

#include "base/error.h"

/* Copy all of `from` to the empty file `to`: as a reflink, by copy_file_range, or through
 * memory.  Return 0, -EINTR if *stop was set, -ESTALE if `from` became shorter, or
 * -ENOSPC, ... */
int copy_file(int from, int to, const _Atomic int *stop, struct error *err);

#endif
