/* SPDX-License-Identifier: BSD-2-Clause */
/* One backing file: what it is, opening it, and what to say when it is not. */
#ifndef EXTENT_FILE_H
#define EXTENT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* What tells a file from another one, or from itself before a write. */
struct identity {
	uint64_t dev, ino, size, mtime;
};
void identity_of(const struct stat *st, struct identity *id);
/* A time stamp as a number, as in there: nanoseconds since 1970. */
uint64_t file_time(const struct timespec *t);
bool identity_equal(const struct identity *a, const struct identity *b);

/* stat; -ENODATA: there is no such file, -EIO: no regular file, or anything
 * else.  `dir` is a descriptor as openat takes it. */
int file_stat(int dir, const char *path, struct stat *st, struct error *err);
/* As file_stat, and open for reading.  Never waits for a FIFO's writer, never
 * opens a device.  -EMFILE: no descriptor is left, here or system-wide. */
int file_open(int dir, const char *path, int *fd, struct stat *st,
	      struct error *err);
/* Bytes read, fewer than `len` only at the end of the file, or -errno. */
ssize_t file_read(int fd, uint64_t pos, void *data, size_t len);

/* Sentences.  Each returns the code that it sets. */
int file_fail_errno(struct error *err, const char *path, int e);
int file_fail_stale(struct error *err, const char *path,
		    const struct identity *was, const struct identity *is);
/* The end of a path, short enough to leave room for the rest of a sentence. */
const char *file_shown(const char *path);

#endif
