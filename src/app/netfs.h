/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a directory on a file system that other nodes share? */
#ifndef APP_NETFS_H
#define APP_NETFS_H

#include <stdint.h>

#include "app/mountinfo.h"

/* The name of the network or cluster file system that an existing directory is
 * on ("NFS", "Lustre", "sshfs"; static), or NULL: a local one, or nobody can
 * tell.  Follows symlinks and mounts what autofs has there; waits as long as
 * that file system does. */
const char *network_fs(const char *path);

/* What that goes by.  `type` and `source` as mountinfo has them ("fuse.sshfs",
 * "host:/home"), or the magic number of statfs(2). */
const char *network_fs_of_type(const char *type, const char *source);
const char *network_fs_of_magic(uint32_t magic);

#endif
