/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE over io_uring, and why not. */
#ifndef FUSE_URING_H
#define FUSE_URING_H

#include <stdbool.h>

/* What tells libfuse to use it. */
#define URING_VARIABLE "FUSE_URING_ENABLE"
/* Would libfuse of that version (fuse_version()) use it, where the variable has this
 * value?  NULL: it is not set. */
bool uring_is_wanted(int libfuse, const char *value);

#endif
