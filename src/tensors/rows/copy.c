/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of a part that is written, and the copy that takes its place. */

/*
 * There are two locks, on the part itself, so that there are no lock files and the kernel
 * releases them:
 *
 *	a POSIX lock of the open file, for writing: other tensorfs processes that write
 *	the part wait for it;
 *	flock, shared: libhdf5 takes the same to read, so readers (h5py, skerch) are not
 *	disturbed.  A program that has the part open for writing holds it exclusively, and
 *	would go on writing to a file that has no name any more.  We wait for that program,
 *	but not for ever, because it may be a notebook.
 *
 * While we waited for a lock, the part may have been replaced.  If the path leads to
 * another file, that is opened and locked instead.
 *
 * The name of the copy follows from that of the part: the process that holds the lock
 * knows that a file of that name was left by a killed writer.
 */
#include "tensors/rows/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "extent/file.h"
#include "tensors/copy.h"

#define SUFFIX ".tensorfs-write"
#define SUFFIX_SECOND ".tensorfs-write-2"
/* Without locks, writers must not share a name. */
#define SUFFIX_UNLOCKED ".tensorfs-XXXXXX"
#define WAIT_MS 50
#define PATIENCE_MS 60000 /* longest wait for a program other than tensorfs */

/* ---- locking ----------------------------------------------------------------- */

static bool no_locks_here(int e)
{
	return e == ENOLCK || e == ENOTSUP || e == ENOSYS || e == EINVAL;
}

static int lock_failed(const struct write_copy *c, int e, struct error *err)
{
	if (no_locks_here(e))
		return error_set(err, -ENOLCK,
				 "'%s': this file system has no locks; with "
				 "--no-lock you must make sure that no two "
				 "processes write the same part",
				 c->path);
	return error_errno(err, -e, "cannot lock '%s'", c->path);
}

static int write_copy_wait(const _Atomic int *stop, struct error *err)
{
	const struct timespec t = {0, WAIT_MS * 1000000L};

	if (!*stop)
		nanosleep(&t, NULL);
	return *stop ? error_set(err, -EINTR, "interrupted") : 0;
}

/* Lock out other tensorfs processes.  F_OFD_SETLKW is not used, because the signal to
 * stop might arrive just before it waits. */
static int lock_ours(const struct write_copy *c, const _Atomic int *stop,
		     struct error *err)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int r;

	while (fcntl(c->locked, F_OFD_SETLK, &l) < 0) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return lock_failed(c, errno, err);
		r = write_copy_wait(stop, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Lock out programs that write with libhdf5. */
static int lock_theirs(const struct write_copy *c, const _Atomic int *stop,
		       struct error *err)
{
	unsigned waited = 0;
	int r;

	while (flock(c->locked, LOCK_SH | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return lock_failed(c, errno, err);
		if (waited >= PATIENCE_MS)
			return error_set(err, -EAGAIN,
					 "'%s' is open for writing in another "
					 "program",
					 c->path);
		r = write_copy_wait(stop, err);
		if (r < 0)
			return r;
		waited += WAIT_MS;
	}
	return 0;
}

static int write_copy_open_part(struct write_copy *c, struct stat *st,
				struct error *err)
{
	c->locked = open(c->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (c->locked < 0 && errno == ENOENT)
		return error_set(err, -ENODATA, "'%s' does not exist", c->path);
	if (c->locked < 0)
		return error_errno(err, -errno, "cannot write '%s'", c->path);
	if (fstat(c->locked, st) < 0)
		return error_errno(err, -errno, "'%s'", c->path);
	if (!S_ISREG(st->st_mode))
		return error_set(err, -EINVAL, "'%s' is not a regular file",
				 c->path);
	return 0;
}

static int write_copy_open_dir(struct write_copy *c, const char *path,
			       struct error *err)
{
	cleanup_free char *dir = NULL;
	char *slash;

	c->path = realpath(path, NULL);
	if (!c->path && errno == ENOENT)
		return error_set(err, -ENODATA, "'%s' does not exist", path);
	if (!c->path)
		return error_errno(err, -errno, "'%s'", path);
	slash = strrchr(c->path, '/');
	dir = strndup(c->path, (size_t)(slash - c->path) + (slash == c->path));
	if (!dir)
		return error_no_memory(err, "the directory of a part");
	c->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->dir < 0 ? error_errno(err, -errno, "'%s'", dir) : 0;
}

int write_copy_lock(struct write_copy *c, const char *path, bool no_lock,
		    const _Atomic int *stop, struct error *err)
{
	struct stat held, now;
	int r = write_copy_open_dir(c, path, err);

	while (r == 0) {
		r = write_copy_open_part(c, &held, err);
		if (r < 0 || no_lock)
			break;
		r = lock_ours(c, stop, err);
		if (r == 0)
			r = lock_theirs(c, stop, err);
		if (r < 0)
			break;
		if (lstat(c->path, &now) == 0 && now.st_dev == held.st_dev &&
		    now.st_ino == held.st_ino)
			return 0;
		close(steal_fd(&c->locked));
	}
	return r;
}

/* ---- the copy ---------------------------------------------------------------- */

/* Return "/a/.NAME" and the suffix, which the caller frees, or NULL. */
static char *fresh_path(const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char *out;

	return asprintf(&out, "%.*s.%s%s", (int)(base - path), path, base,
			suffix) < 0
		       ? NULL
		       : out;
}

/* Copy extended attributes (access lists among them) as far as permitted. */
static int copy_attributes(const struct write_copy *c, struct error *err)
{
	cleanup_free char *names = malloc(XATTR_LIST_MAX);
	cleanup_free void *value = malloc(XATTR_SIZE_MAX);
	ssize_t n, len;

	if (!names || !value)
		return error_no_memory(err, "extended attributes");
	n = flistxattr(c->locked, names, XATTR_LIST_MAX);
	for (const char *at = names; n > 0 && at < names + n;
	     at += strlen(at) + 1) {
		len = fgetxattr(c->locked, at, value, XATTR_SIZE_MAX);
		if (len >= 0)
			(void)!fsetxattr(c->fd, at, value, (size_t)len, 0);
	}
	return 0;
}

/* Give the copy the owner, mode and extended attributes of the part. */
static int write_copy_adopt_attributes(const struct write_copy *c,
				       struct error *err)
{
	struct stat st;

	if (fstat(c->locked, &st) < 0)
		return error_errno(err, -errno, "'%s'", c->path);
	if (fchown(c->fd, st.st_uid, st.st_gid) < 0 &&
	    fchown(c->fd, (uid_t)-1, st.st_gid) < 0 && errno != EPERM)
		return error_errno(err, -errno, "'%s'", c->fresh);
	if (fchmod(c->fd, st.st_mode & 0777) < 0)
		return error_errno(err, -errno, "'%s'", c->fresh);
	return copy_attributes(c, err);
}

int write_copy_make(struct write_copy *c, bool no_lock, const _Atomic int *stop,
		    struct error *err)
{
	char *path = fresh_path(c->path, no_lock ? SUFFIX_UNLOCKED : SUFFIX);
	int r;

	if (!path)
		return error_no_memory(err, "the name of the copy");
	if (!no_lock)
		unlink(path);
	c->fd = no_lock ? mkostemp(path, O_CLOEXEC)
			: open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			       0600);
	if (c->fd < 0) {
		r = error_errno(err, -errno,
				"cannot write to the directory of '%s'",
				c->path);
		free(path);
		return r;
	}
	c->fresh = path;
	c->second = no_lock ? NULL : fresh_path(c->path, SUFFIX_SECOND);
	r = copy_file(c->locked, c->fd, stop, err);
	if (r < 0)
		return error_prefix(err, "'%s': ", c->path);
	return write_copy_adopt_attributes(c, err);
}

int write_copy_second(struct write_copy *c, struct error *err)
{
	int fd = open(c->second, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || rename(c->second, c->fresh) < 0) {
		int code = error_errno(err, -errno, "'%s'", c->second);

		if (fd >= 0)
			close(fd);
		unlink(c->second);
		return code;
	}
	close(c->fd);
	c->fd = fd;
	return write_copy_adopt_attributes(c, err);
}

int write_copy_publish(struct write_copy *c, struct error *err)
{
	if (fsync(c->fd) < 0)
		return error_errno(err, -errno, "cannot write '%s'", c->path);
	if (rename(c->fresh, c->path) < 0)
		return error_errno(err, -errno, "cannot replace '%s'", c->path);
	free(steal_pointer(&c->fresh));
	/* The part was replaced, but that may not survive a crash. */
	if (fsync(c->dir) < 0 && errno != EINVAL)
		return error_errno(err, -errno,
				   "cannot sync the directory of '%s'",
				   c->path);
	return 0;
}

void write_copy_free(struct write_copy *c)
{
	if (c->fresh)
		unlink(c->fresh);
	if (c->fd >= 0)
		close(c->fd);
	if (c->locked >= 0)
		close(c->locked);
	if (c->dir >= 0)
		close(c->dir);
	free(c->fresh);
	free(c->second);
	free(c->path);
	*c = (struct write_copy)WRITE_COPY_INIT;
}

/* ---- leftovers of killed writers ------------------------------------------------ */

void hdf5_write_sweep(const char *path)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct write_copy c = WRITE_COPY_INIT;
	struct error ignored = {0};
	struct stat held, now;

	if (write_copy_open_dir(&c, path, &ignored) == 0 &&
	    write_copy_open_part(&c, &held, &ignored) == 0 &&
	    fcntl(c.locked, F_OFD_SETLK, &l) == 0 && lstat(c.path, &now) == 0 &&
	    now.st_dev == held.st_dev && now.st_ino == held.st_ino) {
		cleanup_free char *fresh = fresh_path(c.path, SUFFIX);
		cleanup_free char *second = fresh_path(c.path, SUFFIX_SECOND);

		if (fresh)
			unlink(fresh);
		if (second)
			unlink(second);
	}
	write_copy_free(&c);
}

/* If this is ".NAME" and one of the suffixes, return the length of NAME; otherwise 0. */
static size_t write_copy_name_length(const char *name)
{
	const char *const suffixes[] = {SUFFIX, SUFFIX_SECOND};
	size_t n = strlen(name);

	for (unsigned i = 0; i < 2; i++) {
		size_t tail = strlen(suffixes[i]);

		if (name[0] == '.' && n > tail + 1 &&
		    !strcmp(name + n - tail, suffixes[i]))
			return n - tail - 1;
	}
	return 0;
}

void hdf5_write_sweep_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	cleanup_free char *dir = n ? strndup(path, n) : strdup("./");
	DIR *d = dir ? opendir(dir) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t len = write_copy_name_length(e->d_name);
		char *part;

		if (!len)
			continue;
		if (asprintf(&part, "%s%.*s", dir, (int)len, e->d_name + 1) < 0)
			break;
		hdf5_write_sweep(part);
		free(part);
	}
	if (d)
		closedir(d);
}
