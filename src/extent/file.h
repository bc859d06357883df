/* SPDX-License-Identifier: BSD-2-Clause */
/* One backing file: its identity, opening it, and the errors about it. */
#ifndef EXTENT_FILE_H
#define EXTENT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Tells a file from any other file, and from itself before a write. */
struct identity {
	uint64_t dev, ino, size, mtime;
};
void identity_of(const struct stat *st, struct identity *id);
/* Return a time stamp as in struct identity: nanoseconds since 1970. */
uint64_t file_time(const struct timespec *t);
bool identity_equal(const struct identity *a, const struct identity *b);

/* Set *st to the attributes of a regular file.  `dir` is a descriptor as openat takes
 * it.  Returns 0, -ENODATA if there is no such file, or -EIO if it is not a regular
 * file or for any other reason.  Blocks on I/O. */
int file_stat(int dir, const char *path, struct stat *st, struct error *err);
/* As file_stat, and open the file for reading; the caller owns *fd.  Never waits for a
 * FIFO's writer, never opens a device.  Returns -EMFILE if this process or the system
 * has no descriptor left. */
int file_open(int dir, const char *path, int *fd, struct stat *st,
	      struct error *err);
/* Return the number of bytes read, fewer than `len` only at the end of the file, or
 * -errno. */
ssize_t file_read(int fd, uint64_t pos, void *data, size_t len);

/* Set an error about a file.  Each returns the code that it sets. */
int file_fail_errno(struct error *err, const char *path, int e);
int file_fail_stale(struct error *err, const char *path,
		    const struct identity *was, const struct identity *is);
/* Return the end of a path (a pointer into it), short enough to leave room for a
 * sentence. */
const char *file_shown(const char *path);

#endif
