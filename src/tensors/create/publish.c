/* SPDX-License-Identifier: BSD-2-Clause */
/* Move new files to their places, and existing files aside: all of them or none. */
#include "tensors/create/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tensors/lock.h"

int create_move(int from, int to, const char *name)
{
	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
		return -errno;
	if (faccessat(to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(from, name, to, name) < 0 ? -errno : 0;
}

/* Undo: move files [first, end) back. */
static void move_back(const struct create_set *s, uint64_t first, uint64_t end,
		      int from, int to)
{
	char name[NAME_MAX + 1];

	for (uint64_t i = first; i < end; i++) {
		create_file_name(&s->plan, i, name);
		create_move(from, to, name);
	}
}

/* Move an existing file aside, unless another process is writing to it, which would
 * rename its copy over the new file.  A process that waits for the lock checks what the
 * name leads to. */
static int put_one_aside(const struct create_set *s, const char *name,
			 struct error *err)
{
	cleanup_close int fd = openat(
		s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char path[PATH_MAX + NAME_MAX + 2];
	int r;

	snprintf(path, sizeof path, "%s/%s", s->plan.dir, name);
	if (fd >= 0 && hdf5_lock_idle(fd, path, "and is not replaced", err) < 0)
		return err->code;
	r = create_move(s->dir, s->old, name);
	if (r == 0 || r == -ENOENT)
		return 0;
	return error_errno(err, r, "cannot replace '%s/%s'", s->plan.dir, name);
}

static int put_aside(struct create_set *s, struct error *err)
{
	char name[NAME_MAX + 1];

	if (mkdirat(s->fresh, CREATE_OLD, 0700) < 0)
		return error_errno(err, -errno, "cannot write to '%s'",
				   s->path);
	s->old = openat(s->fresh, CREATE_OLD,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->old < 0)
		return error_errno(err, -errno, "'%s/" CREATE_OLD "'", s->path);
	for (uint64_t i = s->plan.parts + 1; i-- > 0;) {
		create_file_name(&s->plan, i, name);
		if (put_one_aside(s, name, err) < 0) {
			move_back(s, i + 1, s->plan.parts + 1, s->old, s->dir);
			return err->code;
		}
	}
	return 0;
}

int create_publish(struct create_set *s, struct error *err)
{
	char name[NAME_MAX + 1];
	uint64_t n = s->plan.parts + 1, i;
	int r = s->plan.a->replace ? put_aside(s, err) : 0;

	if (r < 0)
		return r;
	for (i = 0; i < n; i++) {
		/* Sync the names of the parts before the main file gets its name. */
		if (i == n - 1)
			fsync(s->dir);
		create_file_name(&s->plan, i, name);
		r = create_move(s->fresh, s->dir, name);
		if (r < 0)
			break;
	}
	if (r < 0) {
		error_errno(err, r, "cannot make '%s/%s'", s->plan.dir, name);
		move_back(s, 0, i, s->dir, s->fresh);
		if (s->old >= 0)
			move_back(s, 0, n, s->old, s->dir);
		return r;
	}
	if (fsync(s->dir) < 0 && errno != EINVAL)
		return error_errno(err, -errno, "cannot sync '%s'",
				   s->plan.dir);
	return 0;
}
