/* SPDX-License-Identifier: BSD-2-Clause */
/* The user's private directory: opened without trust, removed without traces. */

/*
 * /dev/shm is writable by every user.  Another user who is there first may plant anything
 * under the name that we are going to use: a symlink that leads to a directory of
 * ours, or a directory in which that user can exchange our files.  So a name is
 * opened without following symlinks, and trusted only if the open descriptor is a
 * directory of our own that no other user can write to.  From there on everything is
 * relative to descriptors: paths are for sentences only.
 */
#include "base/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

static int shm_refuse(const char *path, int code, const char *why,
		      struct error *err)
{
	return error_set(err, code,
			 "'%s' cannot be trusted: %s; remove it, or choose "
			 "another place",
			 path, why);
}

/* Check that an open directory is ours and closed to others, closing it to readers if it
 * was open to them. */
static int shm_check_trusted(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot open '%s'", path);
	if (st.st_uid != geteuid())
		return shm_refuse(path, -EPERM, "it belongs to another user",
				  err);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return shm_refuse(path, -EPERM, "other users may write to it",
				  err);
	if ((st.st_mode & 0777) != 0700 && fchmod(fd, 0700) < 0)
		return error_errno(err, -errno,
				   "cannot close '%s' to other users", path);
	return 0;
}

static int shm_open_trusted(struct shm_dir *out, int parent, const char *name,
			    bool make, struct error *err)
{
	const char *path = out->path;
	int r;

	if (make && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, "cannot create '%s'", path);
	out->fd = openat(parent, name,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out->fd >= 0) {
		r = shm_check_trusted(out->fd, path, err);
		if (r < 0)
			shm_dir_close(out);
		return r;
	}
	if (errno == ELOOP || errno == ENOTDIR) {
		struct stat st;

		r = -errno;
		if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode))
			return shm_refuse(path, -ELOOP, "it is a symlink", err);
		return shm_refuse(path, r, "it is not a directory", err);
	}
	if (errno == EACCES)
		return shm_refuse(path, -EPERM, "you may not open it", err);
	return error_errno(err, -errno, "cannot open '%s'", path);
}

int shm_home_open(struct shm_dir *out, const char *base, bool make,
		  struct error *err)
{
	cleanup_close int parent = -1;
	char name[32];
	int r;

	*out = (struct shm_dir)SHM_DIR_INIT;
	if (!base)
		base = SHM_DEFAULT;
	parent = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return error_errno(err, -errno, "cannot open '%s'", base);
	snprintf(name, sizeof name, "tensorfs-%lu", (unsigned long)geteuid());
	if (asprintf(&out->path, "%s/%s", base, name) < 0) {
		out->path = NULL;
		return error_no_memory(err, "the path of a directory");
	}
	r = shm_open_trusted(out, parent, name, make, err);
	if (r < 0)
		shm_dir_close(out);
	return r;
}

int shm_dir_open(struct shm_dir *out, const struct shm_dir *in,
		 const char *name, bool make, struct error *err)
{
	int r;

	*out = (struct shm_dir)SHM_DIR_INIT;
	if (asprintf(&out->path, "%s/%s", in->path, name) < 0) {
		out->path = NULL;
		return error_no_memory(err, "the path of a directory");
	}
	r = shm_open_trusted(out, in->fd, name, make, err);
	if (r < 0)
		shm_dir_close(out);
	return r;
}

void shm_dir_close(struct shm_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	*d = (struct shm_dir)SHM_DIR_INIT;
}

bool shm_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int shm_space(int fd, uint64_t *available, uint64_t *total, struct error *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return error_errno(err, -errno,
				   "cannot tell how much space is free");
	if (fs.f_blocks == 0) {
		*available = *total = UINT64_MAX;
		return 0;
	}
	if (mul_overflows((uint64_t)fs.f_bavail, (uint64_t)fs.f_bsize,
			  available))
		*available = UINT64_MAX;
	if (mul_overflows((uint64_t)fs.f_blocks, (uint64_t)fs.f_bsize, total))
		*total = UINT64_MAX;
	return 0;
}

/* ---- locks --------------------------------------------------------------- */

static int shm_open_lock(const struct shm_dir *d, const char *name,
			 struct error *err)
{
	int fd = openat(d->fd, name,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
			0600);
	struct stat st;

	if (fd < 0)
		return error_errno(err, -errno, "cannot open '%s/%s'", d->path,
				   name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return error_set(err, -EPERM, "'%s/%s' is not a regular file",
				 d->path, name);
	}
	return fd;
}

/* Return true if `name` still names the open file `fd`. */
static bool shm_has_name(const struct shm_dir *d, const char *name, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 &&
	       fstatat(d->fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

bool shm_is_locked(const struct shm_dir *d, const char *name)
{
	int fd = openat(d->fd, name,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 &&
		    errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return held;
}

int shm_lock(const struct shm_dir *d, const char *name, enum shm_lock how,
	     bool wait, struct error *err)
{
	const int op =
		(how == SHM_SHARED ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB);

	for (;;) {
		int fd = shm_open_lock(d, name, err), r;

		if (fd < 0)
			return fd;
		do
			r = flock(fd, op);
		while (r < 0 && errno == EINTR);
		if (r == 0 && shm_has_name(d, name, fd))
			return fd;
		r = r < 0 ? -errno : 0;
		close(fd);
		if (r == -EWOULDBLOCK)
			return error_set(err, r, "'%s/%s' is in use", d->path,
					 name);
		if (r < 0)
			return error_errno(err, r, "cannot lock '%s/%s'",
					   d->path, name);
		/* The last holder has removed the file: lock the one that has the name
		 * now. */
	}
}

/* ---- removing ------------------------------------------------------------ */

/*
 * Remove depth first, with one open descriptor a level.  A directory deeper than LEVELS
 * is moved up to the top under a name of its own and removed from there.  So any depth
 * needs LEVELS descriptors only, and no path is ever longer than a name.
 */
#define LEVELS 32

struct removal {
	int top;
	dev_t dev;
	const char *path; /* of the whole tree, for the sentence */
	uint64_t moved;
	int code; /* of the first failure; 0: none */
	struct error *err;
};

static void removal_failed(struct removal *r, int code, const char *name)
{
	if (r->code == 0)
		r->code =
			error_errno(r->err, code, "cannot remove '%s' in '%s'",
				    name, r->path);
}

static void empty_dir(struct removal *r, int fd, unsigned level);

static void move_up(struct removal *r, int in, const char *name)
{
	char moved[40];

	do
		snprintf(moved, sizeof moved, ".deep-%llu",
			 (unsigned long long)r->moved++);
	while (faccessat(r->top, moved, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	if (renameat(in, name, r->top, moved) < 0)
		removal_failed(r, -errno, name);
}

static void remove_entry(struct removal *r, int in, const char *name,
			 unsigned level)
{
	struct stat st;
	int fd;

	if (unlinkat(in, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno != EISDIR && errno != EPERM) {
		removal_failed(r, -errno, name);
		return;
	}
	if (level >= LEVELS) {
		move_up(r, in, name);
		return;
	}
	fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES &&
	    fchmodat(in, name, 0700, 0) == 0) /* fails unless ours */
		fd = openat(in, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		removal_failed(r, -errno, name);
	} else if (st.st_dev != r->dev) {
		removal_failed(r, -EBUSY, name);
	} else {
		if ((st.st_mode & 0700) != 0700)
			fchmod(fd, 0700);
		empty_dir(r, fd, level + 1);
	}
	if (fd >= 0)
		close(fd);
	if (unlinkat(in, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		removal_failed(r, -errno, name);
}

static void empty_dir(struct removal *r, int fd, unsigned level)
{
	/* Open the directory again: `fd` may have been read to its end already, and a new
	 * descriptor begins at the first entry. */
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		removal_failed(r, -errno, "a directory");
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			remove_entry(r, fd, e->d_name, level);
	closedir(d);
}

int shm_remove(const struct shm_dir *d, const char *name, struct error *err)
{
	cleanup_free char *path = NULL;
	struct removal r = {.err = err};
	uint64_t moved;
	struct stat st;
	int fd;

	if (unlinkat(d->fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return error_errno(err, -errno, "cannot remove '%s/%s'",
				   d->path, name);
	if (asprintf(&path, "%s/%s", d->path, name) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a directory");
	}
	fd = openat(d->fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot remove '%s'", path);
	r.top = fd;
	r.dev = st.st_dev;
	r.path = path;
	/* Read the top again while directories were moved there, which the reading may
	 * have missed. */
	do {
		moved = r.moved;
		empty_dir(&r, fd, 0);
	} while (r.code == 0 && r.moved != moved);
	close(fd);
	if (unlinkat(d->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
	    r.code == 0)
		r.code = error_errno(err, -errno, "cannot remove '%s'", path);
	return r.code;
}
