/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether a directory is on a file system that several nodes share. */
#ifndef APP_NETFS_H
#define APP_NETFS_H

#include <stdint.h>

#include "app/mountinfo.h"

/* Return the name of the network or cluster file system that an existing directory is on
 * ("NFS", "Lustre", "sshfs"; static), or NULL if it is local or unknown.  Follows
 * symlinks, and makes autofs mount.  Blocks as long as that file system takes to answer. */
const char *network_fs(const char *path);

/* Return what network_fs returns for a file system with this type and source, as they stand
 * in mountinfo ("fuse.sshfs", "host:/home"), or with this magic number of statfs(2). */
const char *network_fs_of_type(const char *type, const char *source);
const char *network_fs_of_magic(uint32_t magic);

#endif
