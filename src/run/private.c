/* SPDX-License-Identifier: BSD-2-Clause */
/* A mount namespace of one's own: mounting without root and without fusermount3. */

/*
 * Root needs only the mount namespace.  Other users get it together with a user
 * namespace, in which they may mount FUSE file systems and keep their ids: one uid and
 * one gid are mapped, each to itself.  Mounts that are made outside still appear inside;
 * mounts made inside never appear outside.  The capabilities end with exec: the command
 * has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/run.h"

static int private_write_text(const char *path, const char *text,
			      struct error *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return error_errno(err, -errno,
				   "a user namespace cannot be set up (%s)",
				   path);
	return 0;
}

static int map_self(uid_t uid, gid_t gid, struct error *err)
{
	char line[64];
	int r;

	snprintf(line, sizeof line, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	r = private_write_text("/proc/self/uid_map", line, err);
	/* A kernel before 3.19 has no such file, and does not need it to be written. */
	if (r == 0 && access("/proc/self/setgroups", F_OK) == 0)
		r = private_write_text("/proc/self/setgroups", "deny", err);
	snprintf(line, sizeof line, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	return r < 0 ? r : private_write_text("/proc/self/gid_map", line, err);
}

static long sysctl_number(const char *path)
{
	cleanup_fclose FILE *f = fopen(path, "re");
	long value;

	return f && fscanf(f, "%ld", &value) == 1 ? value : -1;
}

/* Set an error that names the setting which forbids the namespace. */
static int private_refused(int code, struct error *err)
{
	const char *what = "the kernel or the container does not permit it";

	if (sysctl_number("/proc/sys/user/max_user_namespaces") == 0)
		what = "root has set the sysctl user.max_user_namespaces to 0";
	else if (sysctl_number("/proc/sys/kernel/unprivileged_userns_clone") ==
		 0)
		what = "root has set the sysctl "
		       "kernel.unprivileged_userns_clone to 0";
	else if (sysctl_number("/proc/sys/kernel/"
			       "apparmor_restrict_unprivileged_userns") > 0)
		what = "root has set the sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns";
	else if (code == -ENOSPC)
		what = "there are already as many as the sysctl "
		       "user.max_user_namespaces permits";
	return error_set(err, code,
			 "mounting without fusermount3 (--private) needs a "
			 "user namespace, but %s (%s)",
			 what, strerror(-code));
}

int run_private_enter(struct error *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWNS) < 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			return private_refused(-errno, err);
		r = map_self(uid, gid, err);
		if (r < 0)
			return private_refused(r, err);
	}
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return private_refused(-errno, err);
	return 0;
}
