/* SPDX-License-Identifier: BSD-2-Clause */
/* Close ranges of file descriptors. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <stdbool.h>

/* Close all descriptors from `from` on except the `n` in `fds`.  Works without
 * close_range(2), or where it is forbidden, too; returns false if too many descriptors
 * may be open to close them one by one.  It only makes system calls, so a child forked
 * from a threaded process may call it. */
bool descriptors_keep_only(const int *fds, unsigned n, unsigned from);

#endif
