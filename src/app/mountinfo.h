/* SPDX-License-Identifier: BSD-2-Clause */
/* What is mounted where, as the kernel tells in /proc/self/mountinfo. */
#ifndef APP_MOUNTINFO_H
#define APP_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define MOUNT_TYPE "fuse.tensorfs"

struct mount_entry {
	int id; /* as in fdinfo */
	char *point, *type, *source,
		*options; /* of the super block; unescaped */
};
struct mount_list {
	struct mount_entry *at; /* in the order they were mounted */
	size_t n, room;
};
/* Read the table from `file`, NULL: of this process. */
int mounts_read(struct mount_list *out, const char *file, struct error *err);
void mounts_free(struct mount_list *l);
/* The mount that a path lies on, symlinks followed, or NULL: not in the list. */
const struct mount_entry *mounts_holding(const struct mount_list *l,
					 const char *path);
/* The mount whose root is at `point`, a canonical path, as it is seen there now;
 * or NULL. */
const struct mount_entry *mounts_find(const struct mount_list *l,
				      const char *point);
bool mount_is_ours(const struct mount_entry *m);
/* The user who mounted it (user_id=) and his group, or -1. */
long mount_user(const struct mount_entry *m);
long mount_group(const struct mount_entry *m);
/* The canonical path, also of a mount point whose daemon is dead; malloc'ed,
 * NULL with errno set. */
char *mount_point_path(const char *path);
/* Does this errno say that the daemon of a mount has died, before it was asked or while? */
bool mount_has_died(int code);
/* Unmount: by the system call, else by fusermount3.  0, -EBUSY, ... */
int mount_detach(const char *point, bool lazy, struct error *err);

#endif
