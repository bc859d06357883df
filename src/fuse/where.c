/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where our mount is now, and unmounts. */
/* A directory above the mount point may be renamed while the mount exists.  The path
 * that the user gave then leads nowhere or to something else; the kernel's table of
 * mounts has the new path. */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "fuse/private.h"

/* Return the mount point of the file system `device` (malloc'ed), NULL if it is not
 * mounted. */
static char *mounted_at(dev_t device)
{
	cleanup_fclose FILE *f = fopen("/proc/self/mountinfo", "re");
	cleanup_free char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		unsigned major, minor;
		int begin = 0, end = 0;

		/* id, parent, device, root, mount point; proc_pid_mountinfo(5) */
		if (sscanf(line, "%*d %*d %u:%u %*s %n%*s%n", &major, &minor,
			   &begin, &end) < 2 ||
		    !end || makedev(major, minor) != device)
			continue;
		line[end] = '\0';
		parse_mount_field(line + begin);
		return strdup(line + begin);
	}
	return NULL;
}

bool fuse_face_find(struct fuse_face *f)
{
	char *now;

	if (fuse_face_is_there(f))
		return true;
	now = f->device ? mounted_at(f->device) : NULL;
	if (!now)
		return false;
	free(f->mountpoint);
	f->mountpoint = now;
	f->moved = true;
	return fuse_face_is_there(f);
}

int fuse_unmount_path(const char *path, bool lazy)
{
	char *argv[] = {(char *)"fusermount3",
			(char *)"-u",
			(char *)"-q",
			(char *)(lazy ? "-z" : "--"),
			(char *)(uintptr_t)path,
			NULL};
	int status;
	pid_t pid;

	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EBUSY)
		return -EBUSY;
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
		return -ENOENT;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -EBUSY;
}
