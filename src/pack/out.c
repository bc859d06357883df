/* SPDX-License-Identifier: BSD-2-Clause */
/* The output file: it gets its name only when it is complete and synced. */

/*
 * Where the file system allows it, the file has no name at all until it is published
 * (O_TMPFILE), so that not even SIGKILL leaves anything behind.  Elsewhere, and for the
 * moment before it replaces another file, it is ".NAME.tensorfs-XXXXXX", locked while its
 * process lives; the next process that makes NAME removes such files if they are not
 * locked.
 */
#include "pack/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Start write-back when this many bytes are dirty, so that the sync at the end does not
 * have to write everything. */
#define BEHIND (UINT64_C(32) << 20)
/* Bytes of NAME that are used in the temporary name, so that it fits in 255 bytes. */
#define BASE_MOST 230
/* Attempts to make a temporary file before giving up. */
#define NAMED_MOST 100

struct out {
	char *path, *fresh; /* fresh: the temporary name, or NULL */
	char by_fd[40];
	int fd, dir;
	uint64_t size, behind;
	bool replace, synced, done;
};

static int out_open_dir(struct out *o, const char **base, struct error *err)
{
	const char *slash = strrchr(o->path, '/');
	cleanup_free char *dir =
		slash ? strndup(o->path,
				(size_t)(slash - o->path) + (slash == o->path))
		      : strdup(".");

	*base = slash ? slash + 1 : o->path;
	if (!dir)
		return error_no_memory(err, "the name of the output");
	o->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return o->dir < 0 ? error_errno(err, -errno, "'%s'", dir) : 0;
}

/* Resolve a symbolic link, because its target is what is replaced, as with tar and cp:
 * the target may be on another, larger file system. */
static int out_follow_link(struct out *o, struct error *err)
{
	char *real = realpath(o->path, NULL);

	if (!real)
		return errno == ENOMEM
			       ? error_no_memory(err, "the name of the output")
			       : error_errno(err, -errno, "'%s'", o->path);
	free(o->path);
	o->path = real;
	return 0;
}

/* Check what is at the path.  Set *mode to the mode of the file that will be replaced;
 * leave it unchanged if there is no file. */
static int out_check_old(struct out *o, mode_t *mode, struct error *err)
{
	struct stat link, st;

	if (!strcmp(o->path, "-"))
		return error_set(
			err, -EINVAL,
			"cannot write to '-': the output gets its name when it "
			"is complete (for a file of that name give ./-)");
	if (lstat(o->path, &link) < 0)
		return errno == ENOENT
			       ? 0
			       : error_errno(err, -errno, "'%s'", o->path);
	if (stat(o->path, &st) < 0)
		return S_ISLNK(link.st_mode) && errno == ENOENT
			       ? error_set(err, -EEXIST,
					   "'%s' is a symbolic link to a file "
					   "that does not exist",
					   o->path)
			       : error_errno(err, -errno, "'%s'", o->path);
	if (S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, "'%s' is a directory", o->path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL,
				 "'%s' is not a regular file, which alone an "
				 "output can replace",
				 o->path);
	if (!o->replace)
		return error_set(err, -EEXIST,
				 "'%s' already exists; --force replaces it",
				 o->path);
	*mode = st.st_mode & 07777;
	return S_ISLNK(link.st_mode) ? out_follow_link(o, err) : 0;
}

/* ---- the file in the making ---------------------------------------------- */

#define MARK ".tensorfs-"

static bool out_is_leftover(const char *name, const char *base)
{
	size_t n = strnlen(base, BASE_MOST);

	return *name == '.' && !strncmp(name + 1, base, n) &&
	       !strncmp(name + 1 + n, MARK, sizeof MARK - 1) &&
	       strlen(name + 1 + n) == sizeof MARK - 1 + 6;
}

/* Remove temporary files of processes that are dead. */
static void out_sweep(const struct out *o, const char *base)
{
	int fd = openat(o->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		int old;

		if (!out_is_leftover(e->d_name, base))
			continue;
		old = openat(o->dir, e->d_name,
			     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0)
			unlinkat(o->dir, e->d_name, 0);
		if (old >= 0)
			close(old);
	}
	closedir(d);
}

/* Lock a temporary file.  Return false if another process removed it first. */
static bool out_hold_lock(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return false;
	return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

static int out_make_named(struct out *o, const char *base, struct error *err)
{
	int r;

	for (unsigned i = 0; i < NAMED_MOST; i++) {
		if (asprintf(&o->fresh, "%.*s.%.*s" MARK "XXXXXX",
			     (int)(base - o->path), o->path, BASE_MOST,
			     base) < 0) {
			o->fresh = NULL;
			return error_no_memory(err, "the name of the output");
		}
		o->fd = mkostemp(o->fresh, O_CLOEXEC);
		if (o->fd < 0)
			break;
		if (out_hold_lock(o->fd))
			return 0;
		unlink(o->fresh);
		close(steal_fd(&o->fd));
		free(steal_pointer(&o->fresh));
		errno = EBUSY;
	}
	r = error_errno(err, -errno, "cannot write to the directory of '%s'",
			o->path);
	free(steal_pointer(&o->fresh));
	return r;
}

static int out_make(struct out *o, const char *base, mode_t mode, bool old,
		    struct error *err)
{
	if (!old) {
		mode_t mask = umask(0);

		umask(mask);
		mode &= ~mask;
	}
	o->fd = openat(o->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (o->fd >= 0) {
		snprintf(o->by_fd, sizeof o->by_fd, "/proc/self/fd/%d", o->fd);
		/* No other process can have it. */
		flock(o->fd, LOCK_EX | LOCK_NB);
		/* Without /proc it could never be given a name. */
		if (access(o->by_fd, F_OK) < 0)
			close(steal_fd(&o->fd));
	}
	if (o->fd < 0) {
		int r = out_make_named(o, base, err);

		if (r < 0)
			return r;
	}
	if (fchmod(o->fd, mode) < 0)
		return error_errno(err, -errno, "cannot write '%s'", o->path);
	return 0;
}

/* Link the unnamed file to a temporary name in the same directory, from where it can be
 * renamed. */
static int out_link_temporary(struct out *o, struct error *err)
{
	const char *slash = strrchr(o->path, '/');
	const char *base = slash ? slash + 1 : o->path;

	for (unsigned i = 0; i < 1000 && !o->fresh; i++) {
		if (asprintf(&o->fresh, "%.*s.%.*s" MARK "%06x",
			     (int)(base - o->path), o->path, BASE_MOST, base,
			     ((unsigned)getpid() * 1000 + i) & 0xffffff) < 0) {
			o->fresh = NULL;
			return error_no_memory(err, "the name of the output");
		}
		if (linkat(AT_FDCWD, o->by_fd, AT_FDCWD, o->fresh,
			   AT_SYMLINK_FOLLOW) == 0)
			return 0;
		free(steal_pointer(&o->fresh));
		if (errno != EEXIST)
			break;
	}
	return o->fresh ? 0
			: error_errno(err, -errno, "cannot make '%s'", o->path);
}

/* Check the path, open its directory and remove leftovers.  Set *old to the mode of the
 * existing file, or 0 if there is none. */
static int out_begin(struct out **out, const char *path, bool replace,
		     mode_t *old, const char **base, struct error *err)
{
	struct out *o = calloc(1, sizeof *o);
	int r;

	*out = NULL;
	*old = 0;
	if (!o)
		return error_no_memory(err, "the name of the output");
	o->fd = o->dir = -1;
	o->path = strdup(path);
	o->replace = replace;
	r = o->path ? out_check_old(o, old, err)
		    : error_no_memory(err, "the name of the output");
	if (r == 0)
		r = out_open_dir(o, base, err);
	if (r == 0 && !**base)
		r = error_set(err, -EISDIR, "'%s' is a directory", path);
	if (r == 0)
		out_sweep(o, *base);
	if (r < 0) {
		out_free(o);
		return r;
	}
	*out = o;
	return 0;
}

int out_check(const char *path, bool replace, struct error *err)
{
	const char *base;
	struct out *o;
	mode_t old;
	int r = out_begin(&o, path, replace, &old, &base, err);

	if (r == 0 && faccessat(o->dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = error_errno(err, -errno,
				"cannot write to the directory of '%s'",
				o->path);
	out_free(o);
	return r;
}

int out_new(struct out **out, const char *path, mode_t mode, bool replace,
	    struct error *err)
{
	const char *base;
	struct out *o;
	mode_t old;
	int r = out_begin(&o, path, replace, &old, &base, err);

	*out = NULL;
	if (r == 0)
		r = out_make(o, base, old ? old : mode, old != 0, err);
	if (r < 0) {
		out_free(o);
		return r;
	}
	*out = o;
	return 0;
}

int out_write(struct out *o, const void *data, size_t n, struct error *err)
{
	const char *at = data;

	while (n > 0) {
		ssize_t done = write(o->fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_errno(err, done < 0 ? -errno : -EIO,
					   "cannot write '%s'", o->path);
		at += done;
		n -= (size_t)done;
		o->size += (uint64_t)done;
	}
	if (o->size - o->behind >= BEHIND) {
		sync_file_range(o->fd, (off_t)o->behind,
				(off_t)(o->size - o->behind),
				SYNC_FILE_RANGE_WRITE);
		o->behind = o->size;
	}
	return 0;
}

int out_back(struct out *o, uint64_t size, struct error *err)
{
	if (ftruncate(o->fd, (off_t)size) < 0 ||
	    lseek(o->fd, (off_t)size, SEEK_SET) < 0)
		return error_errno(err, -errno, "cannot write '%s'", o->path);
	o->size = size;
	if (o->behind > size)
		o->behind = size;
	return 0;
}

uint64_t out_size(const struct out *o)
{
	return o->size;
}

int out_fd(const struct out *o)
{
	return o->fd;
}

const char *out_path(const struct out *o)
{
	return o->fresh ? o->fresh : o->by_fd;
}

int out_sync(struct out *o, struct error *err)
{
	if (o->synced)
		return 0;
	if (fsync(o->fd) < 0)
		return error_errno(err, -errno, "cannot write '%s'", o->path);
	o->synced = true;
	return 0;
}

/* Give the file its final name, replacing an old file if that is allowed. */
static int out_give_name(struct out *o, struct error *err)
{
	int r;

	if (!o->fresh && !o->replace) {
		if (linkat(AT_FDCWD, o->by_fd, AT_FDCWD, o->path,
			   AT_SYMLINK_FOLLOW) < 0)
			return error_errno(err, -errno, "cannot make '%s'",
					   o->path);
		return 0;
	}
	r = o->fresh ? 0 : out_link_temporary(o, err);
	if (r < 0)
		return r;
	if (renameat2(AT_FDCWD, o->fresh, AT_FDCWD, o->path,
		      o->replace ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	/* Some file systems do not support RENAME_NOREPLACE. */
	if (!o->replace && (errno == EINVAL || errno == ENOSYS) &&
	    access(o->path, F_OK) < 0 && rename(o->fresh, o->path) == 0)
		return 0;
	return error_errno(err, -errno, "cannot make '%s'", o->path);
}

int out_publish(struct out *o, struct error *err)
{
	int r = out_sync(o, err);

	if (r == 0)
		r = out_give_name(o, err);
	if (r < 0)
		return r;
	o->done = true;
	/* The file has its name, but the name may not survive a crash. */
	if (fsync(o->dir) < 0 && errno != EINVAL)
		return error_errno(err, -errno,
				   "cannot sync the directory of '%s'",
				   o->path);
	return 0;
}

void out_abandon(const struct out *o)
{
	if (o && !o->done && o->fresh)
		unlink(o->fresh);
}

void out_free(struct out *o)
{
	if (!o)
		return;
	out_abandon(o);
	if (o->fd >= 0)
		close(o->fd);
	if (o->dir >= 0)
		close(o->dir);
	free(o->path);
	free(o->fresh);
	free(o);
}
