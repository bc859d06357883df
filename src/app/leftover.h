/* SPDX-License-Identifier: BSD-2-Clause */
/* What a mount leaves behind whose daemon was killed: the tree that it staged. */
#ifndef APP_LEFTOVER_H
#define APP_LEFTOVER_H

#include "app/mountinfo.h"

/*
 * Remove trees of this user that nobody holds any more, from where `m` has its
 * data, which was unmounted a moment ago; `all` is the table that it is in.  Waits
 * a moment for a daemon that is about to end.
 */
void leftover_of_mount(const struct mount_list *all,
		       const struct mount_entry *m);
/* From shared memory.  Cheap where there is nothing. */
void leftover_sweep(void);

#endif
