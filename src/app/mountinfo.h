/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's table of mounts, as in /proc/self/mountinfo. */
#ifndef APP_MOUNTINFO_H
#define APP_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define MOUNT_TYPE "fuse.tensorfs"

struct mount_entry {
	int id; /* mnt_id, as in /proc/PID/fdinfo */
	char *point, *type, *source,
		/* `options` are those of the superblock; all but them are unescaped */
		*options;
};
struct mount_list {
	struct mount_entry *at; /* in the order they were mounted */
	size_t n, room;
};
/* Read the table from `file`, or that of this process if it is NULL. */
int mounts_read(struct mount_list *out, const char *file, struct error *err);
void mounts_free(struct mount_list *l);
/* Return the mount that a path lies on (symlinks are followed), NULL if the list lacks
 * it. */
const struct mount_entry *mounts_holding(const struct mount_list *l,
					 const char *path);
/* Return the mount whose root is seen at `point`, a canonical path, now; NULL if there
 * is none. */
const struct mount_entry *mounts_find(const struct mount_list *l,
				      const char *point);
bool mount_is_ours(const struct mount_entry *m);
/* Return the id of the user who mounted it (user_id=), or of that user's group; -1 if
 * not known. */
long mount_user(const struct mount_entry *m);
long mount_group(const struct mount_entry *m);
/* Return the canonical path (malloc'ed), also for a mount point whose daemon is dead;
 * NULL with errno set. */
char *mount_point_path(const char *path);
/* Return true if this errno means that the daemon of a mount has died, before or during
 * the call. */
bool mount_has_died(int code);
/* Unmount with the system call, else with fusermount3.  Return 0, -EBUSY, or another
 * -errno. */
int mount_detach(const char *point, bool lazy, struct error *err);

#endif
