/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes what a mount leaves behind when its daemon was killed: the tree that it
 * staged. */
#ifndef APP_LEFTOVER_H
#define APP_LEFTOVER_H

#include "app/mountinfo.h"

/* Remove those trees of this user that no process holds any more, in the place of the
 * data of `m`, a mount that was just unmounted.  `all` is the table that `m` is an entry
 * of.  Waits up to half a second for a daemon that is about to end. */
void leftover_of_mount(const struct mount_list *all,
		       const struct mount_entry *m);
/* Remove such trees from shared memory.  Cheap if there are none. */
void leftover_sweep(void);

#endif
