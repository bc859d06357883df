/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE over io_uring, and why it is not used. */
#ifndef FUSE_URING_H
#define FUSE_URING_H

#include <stdbool.h>

/* The environment variable that tells libfuse to use it. */
#define URING_VARIABLE "FUSE_URING_ENABLE"
/* Return whether libfuse of that version (fuse_version()) would use io_uring if the
 * variable has this value; NULL if it is not set. */
bool uring_is_wanted(int libfuse, const char *value);

#endif
