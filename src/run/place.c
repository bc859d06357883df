/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where a run mounts: choose, make, remove; sweep up after other runs. */

/*
 *     BASE/tensorfs-JOB-STEP-UID-PID/     0700, locked as long as the run is
 *         mnt/                            the mount point
 *
 * The lock is a flock() of the directory, held through one open file that the keeper has
 * and the daemon inherits: it ends with the last of them, however that ends.  So a place
 * that can be locked is a leftover.  A place that was made a moment ago can be locked as
 * well; therefore the process that made it checks, when it has the lock, whether the
 * place is still there, and makes another if not.
 *
 * Only two things are ever removed: empty directories with such a name, of this user,
 * that no other user may enter; and mounts of tensorfs on the mnt/ in them.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "app/mountinfo.h"
#include "app/netfs.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "run/run.h"

#define POINT "mnt"
#define TRIES 100
/* A process that was killed while mounting may have a helper that still mounts. */
#define REMOVE_MS 500
#define SWEEP_MS 20

/* ---- names --------------------------------------------------------------- */

static const char *skip_digits(const char *p)
{
	if (!isdigit((unsigned char)*p))
		return NULL;
	while (isdigit((unsigned char)*p))
		p++;
	return p;
}

/* Return true if `p` is "UID-PID" or "UID-PID.N". */
static bool is_tail(const char *p, uid_t uid)
{
	char own[32];
	size_t n = (size_t)snprintf(own, sizeof own, "%u-", (unsigned)uid);

	if (strncmp(p, own, n))
		return false;
	p = skip_digits(p + n);
	if (p && *p == '.')
		p = skip_digits(p + 1);
	return p && !*p;
}

bool run_place_name(const char *name, uid_t uid)
{
	static const char start[] = "tensorfs-";
	const char *p = name + strlen(start);

	if (strncmp(name, start, strlen(start)))
		return false;
	if (is_tail(p, uid))
		return true;
	p = skip_digits(p);
	if (!p || *p != '-')
		return false;
	p = !strncmp(p, "-batch-", 7) ? p + 6 : skip_digits(p + 1);
	return p && *p == '-' && is_tail(p + 1, uid);
}

static bool place_is_number(const char *s)
{
	const char *end = s ? skip_digits(s) : NULL;

	return end && !*end && end - s < 20;
}

static void place_make_name(char *out, size_t n, pid_t pid, unsigned attempt)
{
	const char *job = getenv("SLURM_JOB_ID"),
		   *step = getenv("SLURM_STEP_ID");
	char suffix[16] = "";

	if (attempt)
		snprintf(suffix, sizeof suffix, ".%u", attempt);
	if (place_is_number(job))
		snprintf(out, n, "tensorfs-%s-%s-%u-%d%s", job,
			 place_is_number(step) ? step : "batch",
			 (unsigned)geteuid(), (int)pid, suffix);
	else
		snprintf(out, n, "tensorfs-%u-%d%s", (unsigned)geteuid(),
			 (int)pid, suffix);
}

/* ---- removing ------------------------------------------------------------ */

/* libfuse mounts without MOUNT_TYPE where fusermount3 fails or is killed. */
static bool is_own_mount(const struct mount_entry *m)
{
	return mount_is_ours(m) ||
	       (!strcmp(m->type, "fuse") && mount_user(m) == (long)geteuid());
}

/* Unmount: 0 or -errno; -EBUSY if another file system or no file system is mounted
 * there. */
static int place_unmount(const char *point, struct error *err)
{
	const struct mount_entry *m;
	struct mount_list mounts;
	bool ours;
	int r = mounts_read(&mounts, NULL, err);

	if (r < 0)
		return r;
	m = mounts_find(&mounts, point);
	ours = m && is_own_mount(m);
	if (!ours)
		r = error_set(
			err, -EBUSY,
			"'%s' is busy, and tensorfs has not mounted it (%s)",
			point, m ? m->type : "nothing is mounted there");
	mounts_free(&mounts);
	if (!ours)
		return r;
	if (mount_detach(point, false, NULL) == 0)
		return 0;
	return mount_detach(point, true, err);
}

static bool rmdir_gone(const char *path)
{
	return rmdir(path) == 0 || errno == ENOENT;
}

/* An unmount can come before a mount that was under way, so this goes on until the mount
 * point is gone: then no process can mount there. */
static bool remove_place(const char *dir, const char *point, int ms,
			 struct error *err)
{
	const struct timespec moment = {0, 5000000};
	uint64_t end = clock_ms() + (unsigned)ms;

	while (!rmdir_gone(point)) {
		int r = errno == EBUSY
				? place_unmount(point, err)
				: error_errno(err, -errno, "cannot remove '%s'",
					      point);

		if (r == 0 && rmdir_gone(point))
			break;
		if (clock_ms() > end)
			return false;
		nanosleep(&moment, NULL);
	}
	if (rmdir_gone(dir))
		return true;
	error_errno(err, -errno, "cannot remove '%s'", dir);
	return false;
}

/* Return true if it is a directory of this user that no other user may enter. */
static bool is_private_dir(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() &&
	       !(st->st_mode & 077);
}

bool run_place_remove(struct run_shared *p, struct error *err)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (!p->dir[0] || lstat(p->dir, &st) < 0)
		return true;
	if (p->made) {
		if (st.st_dev != p->dev || st.st_ino != p->ino)
			return true;
		/* The command may have changed the mode of everything in $TMPDIR. */
		if ((st.st_mode & 07777) != 0700)
			chmod(p->dir, 0700);
	} else {
		fd = open(p->dir,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* It is not known whether this run made it; it did not if a process holds
		 * it. */
		if (!is_private_dir(&st) || fd < 0 ||
		    flock(fd, LOCK_EX | LOCK_NB) < 0)
			return true;
	}
	return remove_place(p->dir, p->point, REMOVE_MS, err);
}

/* ---- sweeping ------------------------------------------------------------ */

static void place_sweep_one(int base, const char *path, const char *name)
{
	cleanup_close int fd = openat(
		base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_free char *dir = NULL;
	cleanup_free char *point = NULL;
	struct error err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !is_private_dir(&st) ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (asprintf(&dir, "%s/%s", path, name) < 0)
		dir = NULL;
	if (!dir || asprintf(&point, "%s/" POINT, dir) < 0)
		point = NULL;
	/* A place that cannot be removed now is left for the next run. */
	if (point)
		remove_place(dir, point, SWEEP_MS, &err);
}

static void place_sweep_base(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (run_place_name(e->d_name, geteuid()))
			place_sweep_one(dirfd(d), path, e->d_name);
	if (d)
		closedir(d);
}

/* ---- choosing and making ------------------------------------------------- */

/* Return the canonical path of base number i if it can be used, in memory that the caller
 * frees, or NULL.  *more is false when there is no such base. */
static char *place_base(unsigned i, bool *more)
{
	const char *const bases[] = {getenv("SLURM_TMPDIR"), getenv("TMPDIR"),
				     "/tmp", "/dev/shm"};
	const char *path;
	char *real;

	*more = i < sizeof bases / sizeof *bases;
	path = *more ? bases[i] : NULL;
	if (!path || path[0] != '/' || access(path, W_OK | X_OK) < 0)
		return NULL;
	real = realpath(path, NULL);
	if (real &&
	    (network_fs(real) ||
	     strlen(real) > sizeof((struct run_shared *)NULL)->dir - 128)) {
		free(real);
		return NULL;
	}
	return real;
}

void run_place_sweep(void)
{
	bool more = true;

	for (unsigned i = 0; more; i++) {
		cleanup_free char *path = place_base(i, &more);

		if (path)
			place_sweep_base(path);
	}
}

/* Lock the directory that was just made, if it is still there; return its descriptor, or
 * -1. */
static int place_lock_dir(const char *dir)
{
	cleanup_close int fd =
		open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat held, there;

	if (fd < 0 ||
	    (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK))
		return -1;
	if (fstat(fd, &held) < 0 || lstat(dir, &there) < 0 ||
	    held.st_ino != there.st_ino || held.st_dev != there.st_dev ||
	    !is_private_dir(&held))
		return -1;
	return steal_fd(&fd);
}

/* Make a place in `path`: 0 or -errno; -EEXIST: try another name. */
static int place_make_named(struct run *r, const char *path, unsigned attempt)
{
	struct run_shared *p = r->shared;
	struct stat st;
	char name[96];

	place_make_name(name, sizeof name, r->pid, attempt);
	/* Written first, because a process that takes over has to know the name. */
	snprintf(p->point, sizeof p->point, "%s/%s/" POINT, path, name);
	snprintf(p->dir, sizeof p->dir, "%s/%s", path, name);
	if (mkdir(p->dir, 0700) < 0)
		return -errno;
	r->lock = place_lock_dir(p->dir);
	if (r->lock < 0)
		return -EEXIST;
	if (fstat(r->lock, &st) < 0 || mkdirat(r->lock, POINT, 0700) < 0) {
		int code = -errno;

		rmdir(p->dir);
		close(steal_fd(&r->lock));
		return code;
	}
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	p->made = true;
	return 0;
}

static int place_make_in(struct run *r, const char *path, struct error *err)
{
	mode_t mask = umask(077);
	int code = -EEXIST;

	for (unsigned i = 0; i < TRIES && code == -EEXIST; i++)
		code = place_make_named(r, path, i);
	umask(mask);
	if (code == 0)
		return 0;
	error_errno(err, code, "cannot create '%s'", r->shared->dir);
	r->shared->dir[0] = '\0';
	return code;
}

int run_place_make(struct run *r, struct error *err)
{
	bool more = true;
	int code = 0;

	for (unsigned i = 0; more; i++) {
		cleanup_free char *path = place_base(i, &more);

		if (!path)
			continue;
		code = place_make_in(r, path, err);
		if (code == 0)
			return 0;
	}
	if (code < 0)
		return code;
	return error_set(
		err, -ENOENT,
		"there is no place to mount: none of $SLURM_TMPDIR, $TMPDIR, "
		"/tmp and /dev/shm is a local directory of this node that you "
		"may write to; set TMPDIR to such a directory");
}
