/* SPDX-License-Identifier: BSD-2-Clause */
/* The user's private directory for what outlives a process: DIR/tensorfs-UID. */
#ifndef BASE_HOME_H
#define BASE_HOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SHM_DEFAULT "/dev/shm"

/* An open directory that belongs to this user and is closed to others. */
struct shm_dir {
	int fd;     /* -1: not open */
	char *path; /* its path, for sentences and users */
};
#define SHM_DIR_INIT  \
	{             \
		-1, 0 \
	}

/*
 * Open BASE/tensorfs-UID (BASE NULL: /dev/shm; UID is the effective one); with `make`,
 * create it if it is missing.  A symlink, something that is not a directory, a directory
 * of another user, or one that others may write to is refused (-ELOOP, -ENOTDIR, -EPERM).
 * One that others may only read is closed to them. -ENOENT: BASE is missing, or the
 * directory is and `make` is false.  Every error has a sentence.
 */
int shm_home_open(struct shm_dir *out, const char *base, bool make,
		  struct error *err);
/* Open a directory inside of `in` by the same rules; `name` has no '/'. */
int shm_dir_open(struct shm_dir *out, const struct shm_dir *in,
		 const char *name, bool make, struct error *err);
/* Close it; does nothing if it is not open. */
void shm_dir_close(struct shm_dir *d);
/* Return true if the files of this file system are in memory (tmpfs, ramfs). */
bool shm_in_memory(int fd);

enum shm_lock { SHM_SHARED, SHM_EXCLUSIVE };
/*
 * Lock the file `name`, which is created (mode 0600) if it is missing.  Return its
 * descriptor, or -errno with a sentence.  The lock ends when the last process that has
 * the descriptor closes it.  Without `wait`, a file locked by another process is
 * -EWOULDBLOCK.  The locked file is the one that has the name when this returns.
 */
int shm_lock(const struct shm_dir *d, const char *name, enum shm_lock how,
	     bool wait, struct error *err);
/* Return true if a process has `name` locked.  Creates and keeps nothing. */
bool shm_is_locked(const struct shm_dir *d, const char *name);

/*
 * Remove a file, a symlink or a whole tree.  No symlink is followed, no other file system
 * is entered, and any depth works with few descriptors.  Return 0 when it is gone (or was
 * not there), else -errno with the sentence of the first failure; the other entries are
 * removed all the same.
 */
int shm_remove(const struct shm_dir *d, const char *name, struct error *err);

/* Set *available to the bytes that new files of the file system of `fd` could still take
 * (quotas are not counted) and *total to its size in bytes; both are UINT64_MAX where the
 * file system has no limit (a tmpfs mounted with size=0). */
int shm_space(int fd, uint64_t *available, uint64_t *total, struct error *err);

#endif
