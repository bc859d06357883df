/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines a mount point before mounting, and removes a mount whose daemon died. */

/* A dead mount answers ENOTCONN, or ECONNABORTED to a call that was already waiting.
 * Attributes that the kernel still caches can hide that from stat; statfs always asks
 * the daemon. */
#include "app/mountpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "app/leftover.h"
#include "app/mountinfo.h"
#include "app/netfs.h"
#include "base/cleanup.h"

/* The device number of /dev/fuse on every Linux. */
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

static int check_descriptor(const char *path, struct error *err)
{
	const char *digits = path + strlen("/dev/fd/");
	struct stat st;
	char *end;
	long fd = strtol(digits, &end, 10);

	if (!isdigit((unsigned char)*digits) || *end || fd > 1 << 20)
		return error_set(err, -EINVAL, "'%s' is not /dev/fd/N", path);
	if (fstat((int)fd, &st) < 0)
		return error_set(err, -EBADF,
				 "descriptor %ld ('%s') is not open", fd, path);
	if (!S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR))
		return error_set(err, -EINVAL,
				 "descriptor %ld ('%s') is not /dev/fuse: open "
				 "/dev/fuse and mount it first",
				 fd, path);
	return 0;
}

/* Explain -EACCES: only its owner may even stat a FUSE mount, dead or alive. */
static int refuse_foreign(const char *path, struct error *err)
{
	const struct mount_entry *m = NULL;
	struct mount_list mounts = {0};
	int r;

	if (mounts_read(&mounts, NULL, NULL) == 0)
		m = mounts_holding(&mounts, path);
	if (m && mount_user(m) >= 0 && mount_user(m) != (long)geteuid())
		r = error_set(err, -EACCES,
			      "mount point '%s' is on a mount (%s) of user "
			      "%ld, which only that user may enter; %s",
			      path, m->type, mount_user(m),
			      geteuid()
				      ? "choose another directory"
				      : "root may unmount it: tensorfs umount");
	else
		r = error_errno(err, -EACCES, "mount point '%s'", path);
	mounts_free(&mounts);
	return r;
}

/* Stat the mount point; sentences say why it cannot be used.  *dead is set if the daemon
 * of a mount on it has died; *st may be unset then. */
static int look_at_mountpoint(const char *path, struct stat *st, bool *dead,
			      struct error *err)
{
	struct statvfs fs;

	*dead = false;
	if (stat(path, st) < 0) {
		if (mount_has_died(errno)) {
			*dead = true;
			return 0;
		}
		if (errno == ENOENT)
			return error_set(
				err, -ENOENT,
				"mount point '%s' does not exist; make "
				"it first: mkdir -p '%s'",
				path, path);
		if (errno == EACCES)
			return refuse_foreign(path, err);
		return error_errno(err, -errno, "mount point '%s'", path);
	}
	if (!S_ISDIR(st->st_mode))
		return error_set(err, -ENOTDIR,
				 "mount point '%s' is not a directory", path);
	*dead = statvfs(path, &fs) < 0 && mount_has_died(errno);
	return 0;
}

static int remove_dead_mount(const struct command *c, const char *path,
			     const struct mount_list *all,
			     const struct mount_entry *m, struct error *err)
{
	if (!m || !mount_is_ours(m))
		return error_set(err, -ENOTCONN,
				 "mount point '%s' is a dead mount of type %s; "
				 "unmount it first: fusermount3 -u '%s'",
				 path, m ? m->type : "unknown", path);
	if (mount_detach(path, true, err) < 0)
		return error_prefix(err, "a dead mount is in the way: ");
	leftover_of_mount(all, m);
	cli_say(c, "note: '%s' was a dead tensorfs mount; unmounted it", path);
	return 0;
}

static int check_empty(const char *path, struct error *err)
{
	DIR *d = opendir(path);
	struct dirent *e;

	/* If the directory is not readable, the kernel decides whether it can be mounted
	 * on. */
	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
			int r = error_set(err, -ENOTEMPTY,
					  "mount point '%s' is not empty "
					  "('%s' is there); choose another "
					  "directory, or -o nonempty hides "
					  "what is in it",
					  path, e->d_name);
			closedir(d);
			return r;
		}
	closedir(d);
	return 0;
}

/* Refuse a source below the mount point, because the mount would hide it. */
static int check_sources(const char *path, char *const *sources, size_t n,
			 struct error *err)
{
	size_t len = strcmp(path, "/") ? strlen(path) : 0;

	for (size_t i = 0; i < n; i++) {
		cleanup_free char *real = realpath(sources[i], NULL);

		if (real && !strcmp(real, path))
			return error_set(
				err, -EBUSY,
				"'%s' is both the source and the mount "
				"point; mount on another directory",
				sources[i]);
		if (real && !strncmp(real, path, len) && real[len] == '/')
			return error_set(
				err, -EBUSY,
				"source '%s' is inside the mount point "
				"'%s', which would hide it",
				sources[i], path);
	}
	return 0;
}

/* Refuse a network file system: only this node would see the mount, and the others an
 * empty directory. */
static int check_network(const char *path, struct error *err)
{
	const char *name = network_fs(path);

	if (!name)
		return 0;
	return error_set(err, -EREMOTE,
			 "mount point '%s' is on a network file system (%s), "
			 "and only this node will see what is mounted there; "
			 "choose a directory of the node, as in $TMPDIR, /tmp "
			 "or /dev/shm, or insist with --force",
			 path, name);
}

int mountpoint_check(const struct command *c, const char *path,
		     const struct settings *s, char *const *sources, size_t n,
		     char **out, struct error *err)
{
	cleanup_free char *real = NULL;
	struct stat st;
	int r;

	if (!strncmp(path, "/dev/fd/", 8)) {
		r = check_descriptor(path, err);
		if (r < 0)
			return r;
		*out = strdup(path);
		return *out ? 0
			    : error_no_memory(err,
					      "the path of the mount point");
	}
	/* Dead mounts can be stacked. */
	for (int i = 0; i < 16; i++) {
		struct mount_list mounts;
		const struct mount_entry *m;
		bool dead;

		r = look_at_mountpoint(path, &st, &dead, err);
		if (r < 0)
			return r;
		free(real);
		real = mount_point_path(path);
		if (!real)
			return error_errno(err, -errno, "mount point '%s'",
					   path);
		r = mounts_read(&mounts, NULL, err);
		if (r < 0)
			return r;
		m = mounts_find(&mounts, real);
		if (dead)
			r = remove_dead_mount(c, real, &mounts, m, err);
		else if (m && mount_is_ours(m))
			r = error_set(err, -EBUSY,
				      "'%s' is already a tensorfs mount of "
				      "'%s'; unmount it first: tensorfs umount "
				      "'%s'",
				      path, m->source, path);
		mounts_free(&mounts);
		if (r < 0)
			return r;
		if (!dead)
			break;
	}
	r = check_sources(real, sources, n, err);
	if (r == 0 && !s->force)
		r = check_network(real, err);
	if (r == 0 && !s->nonempty)
		r = check_empty(real, err);
	if (r == 0)
		*out = steal_pointer(&real);
	return r;
}

int mountpoint_lock(const struct command *c, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -1;
	r = flock(fd, LOCK_EX | LOCK_NB);
	if (r < 0 && errno == EWOULDBLOCK) {
		cli_say(c,
			"note: waiting for another mount that is being made on "
			"'%s'",
			path);
		do
			r = flock(fd, LOCK_EX);
		while (r < 0 && errno == EINTR);
	}
	if (r == 0)
		return fd;
	close(fd);
	return -1;
}
