/* SPDX-License-Identifier: BSD-2-Clause */
/* One backing file: its identity, opening it, and the errors about it. */
#include "extent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"

#define SHOWN_MAX 240

uint64_t file_time(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

void identity_of(const struct stat *st, struct identity *id)
{
	id->dev = st->st_dev;
	id->ino = st->st_ino;
	id->size = (uint64_t)st->st_size;
	id->mtime = file_time(&st->st_mtim);
}

bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime == b->mtime;
}

const char *file_shown(const char *path)
{
	size_t n = strlen(path);

	if (n <= SHOWN_MAX)
		return path;
	path += n - SHOWN_MAX;
	while (((unsigned char)*path & 0xc0) == 0x80)
		path++;
	return path;
}

int file_fail_errno(struct error *err, const char *path, int e)
{
	char what[128];

	path = file_shown(path);
	if (e == ENOENT || e == ENOTDIR)
		return error_set(err, -ENODATA, "%s is missing (no such file)",
				 path);
	if (e == EACCES || e == EPERM)
		return error_set(err, -EIO, "%s: permission denied", path);
	return error_set(err, -EIO, "%s: %s", path,
			 strerror_r(e, what, sizeof what));
}

int file_fail_stale(struct error *err, const char *path,
		    const struct identity *was, const struct identity *is)
{
	char how[80] = "it was written to";

	if (was->dev != is->dev || was->ino != is->ino)
		strcpy(how, "another file took its place");
	else if (was->size != is->size)
		snprintf(how, sizeof how, "%llu bytes then, %llu now",
			 (unsigned long long)was->size,
			 (unsigned long long)is->size);
	return error_set(err, -ESTALE,
			 "%s changed since it was first read (%s): mount again "
			 "to read its new content",
			 file_shown(path), how);
}

static int check_regular(const char *path, mode_t mode, struct error *err)
{
	const char *what = "device";

	if (S_ISREG(mode))
		return 0;
	if (S_ISDIR(mode))
		what = "directory";
	else if (S_ISFIFO(mode))
		what = "FIFO";
	else if (S_ISSOCK(mode))
		what = "socket";
	return error_set(err, -EIO, "%s is a %s, not a regular file",
			 file_shown(path), what);
}

int file_stat(int dir, const char *path, struct stat *st, struct error *err)
{
	if (fstatat(dir, path, st, 0) < 0)
		return file_fail_errno(err, path, errno);
	return check_regular(path, st->st_mode, err);
}

int file_open(int dir, const char *path, int *out, struct stat *st,
	      struct error *err)
{
	/* O_NONBLOCK: after the stat a FIFO may have taken the file's place. */
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	cleanup_close int fd = -1;
	int r;

	r = file_stat(dir, path, st, err);
	if (r < 0)
		return r;
	do
		fd = openat(dir, path, flags);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return error_set(err, -EMFILE,
				 "%s: too many open files: raise the limit "
				 "(ulimit -n) or use fewer threads",
				 file_shown(path));
	if (fd < 0 || fstat(fd, st) < 0)
		return file_fail_errno(err, path, errno);
	r = check_regular(path, st->st_mode, err);
	if (r < 0)
		return r;
	counter_add(COUNT_FILES_OPENED, 1);
	*out = steal_fd(&fd);
	return 0;
}

ssize_t file_read(int fd, uint64_t pos, void *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, (char *)data + have, len - have,
				  (off_t)(pos + have));

		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			have += (size_t)n;
	}
	return (ssize_t)have;
}
