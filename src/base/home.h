/* SPDX-License-Identifier: BSD-2-Clause */
/* The user's private directory for what outlives a process: DIR/tensorfs-UID. */
#ifndef BASE_HOME_H
#define BASE_HOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SHM_DEFAULT "/dev/shm"

/* An open directory that is ours: owner checked, closed to others. */
struct shm_dir {
	int fd;     /* -1: not open */
	char *path; /* for sentences and for users */
};
#define SHM_DIR_INIT  \
	{             \
		-1, 0 \
	}

/*
 * Open BASE/tensorfs-UID (BASE NULL: /dev/shm; UID the effective one), making it
 * with `make`.  A symlink, something that is no directory, somebody else's or one
 * that others may write to is refused (-EPERM, -ENOTDIR, -ELOOP); one that others
 * may only look into is closed to them.  -ENOENT: BASE, or without `make` the
 * directory, is not there.  Each with a sentence.
 */
int shm_home_open(struct shm_dir *out, const char *base, bool make,
		  struct error *err);
/* The same rules for a directory inside of one; `name` has no '/'. */
int shm_dir_open(struct shm_dir *out, const struct shm_dir *in,
		 const char *name, bool make, struct error *err);
/* Closes; nothing for one that is not open. */
void shm_dir_close(struct shm_dir *d);
/* Do its bytes live in memory (tmpfs, ramfs)? */
bool shm_in_memory(int fd);

enum shm_lock { SHM_SHARED, SHM_EXCLUSIVE };
/*
 * Lock the file `name`, made when missing (0600); its descriptor, or -errno with a
 * sentence.  The lock ends with the last process that has the descriptor.  Without
 * `wait` one that is held is -EWOULDBLOCK.  The file that is locked is the one
 * that has the name when this returns.
 */
int shm_lock(const struct shm_dir *d, const char *name, enum shm_lock how,
	     bool wait, struct error *err);
/* Does somebody hold it?  Makes nothing, holds nothing. */
bool shm_is_locked(const struct shm_dir *d, const char *name);

/*
 * Remove a file, a symlink or a whole tree.  Nothing is followed, no other file
 * system is entered, any depth works with few descriptors.  0 when it is gone (or
 * was not there), else -errno with a sentence; the rest is tried all the same.
 */
int shm_remove(const struct shm_dir *d, const char *name, struct error *err);

/* Bytes a new file of DIR's file system could still take (quota not counted), and
 * its size; UINT64_MAX both where the file system has no limit (a tmpfs mounted
 * with size=0). */
int shm_space(int fd, uint64_t *available, uint64_t *total, struct error *err);

#endif
