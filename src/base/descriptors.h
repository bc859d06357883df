/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing descriptors by the range. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <stdbool.h>

/* Close all descriptors from `from` on but these.  Also where there is no close_range(2),
 * or it is forbidden; false: that cannot be, for too many may be open.  Only makes system
 * calls, so a child that was forked among threads may call it. */
bool descriptors_keep_only(const int *fds, unsigned n, unsigned from);

#endif
