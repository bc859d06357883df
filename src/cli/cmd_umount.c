/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs umount: end mounts, or all mounts of this user, whether or not their daemons
 * live. */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/leftover.h"
#include "app/mountinfo.h"
#include "base/cleanup.h"

static int umount_one(const struct command *c, const struct settings *s,
		      const struct mount_list *mounts, const char *path)
{
	cleanup_free char *point = mount_point_path(path);
	const struct mount_entry *m;
	struct error err = {0};

	if (!point) {
		cli_say(c, "'%s': %s", path, strerror(errno));
		return CLI_INCOMPLETE;
	}
	m = mounts_find(mounts, point);
	if (!m) {
		cli_say(c, "'%s' is not a mount point", path);
		return CLI_INCOMPLETE;
	}
	if (!mount_is_ours(m)) {
		cli_say(c, "'%s' is a mount of type %s, not tensorfs", path,
			m->type);
		return CLI_INCOMPLETE;
	}
	if (mount_detach(point, s->lazy, &err) < 0) {
		cli_say(c, "%s", err.text);
		return CLI_INCOMPLETE;
	}
	leftover_of_mount(mounts, m);
	return CLI_DONE;
}

/* Seconds to wait for an answer: enough for a busy daemon, and short enough for a Slurm
 * epilog. */
#define ANSWER_SECONDS 5

/* Return true if the daemon of a mount has died.  A child asks, under the identity of the
 * mount's user, because root is not let in; and a stopped daemon would block the
 * question, but is not dead. */
static bool is_dead(const struct mount_entry *m)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct statvfs fs;
		gid_t group = (gid_t)mount_group(m);
		uid_t user = (uid_t)mount_user(m);

		alarm(ANSWER_SECONDS);
		if (getuid() == 0 && (setgroups(0, NULL) < 0 ||
				      setresgid(group, group, group) < 0 ||
				      setresuid(user, user, user) < 0))
			_exit(0);
		_exit(statvfs(m->point, &fs) < 0 && mount_has_died(errno));
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Unmount the latest mount first, so that nested mounts come apart. */
static int umount_all(const struct command *c, const struct settings *s,
		      const struct mount_list *mounts)
{
	long user = (long)getuid();
	int r = CLI_DONE;

	for (size_t i = mounts->n; i-- > 0;) {
		const struct mount_entry *m = &mounts->at[i];
		struct error err = {0};

		if (!mount_is_ours(m) || (user != 0 && mount_user(m) != user) ||
		    (s->dead && !is_dead(m)))
			continue;
		if (mount_detach(m->point, s->lazy, &err) < 0) {
			cli_say(c, "%s", err.text);
			r = CLI_INCOMPLETE;
			continue;
		}
		leftover_of_mount(mounts, m);
	}
	return r;
}

int cmd_umount(const struct command *c, struct settings *s, int argc,
	       char **argv)
{
	struct mount_list mounts;
	struct error err = {0};
	int r = CLI_DONE;

	if (s->all && argc > 0)
		return cli_usage(c, "--all takes no mount point");
	if (s->dead && !s->all)
		return cli_usage(c, "--dead needs --all");
	if (!s->all && argc == 0)
		return cli_usage(c, "MOUNTPOINT or --all is missing");
	if (mounts_read(&mounts, NULL, &err) < 0) {
		cli_say(c, "%s", err.text);
		return CLI_INCOMPLETE;
	}
	if (s->all)
		r = umount_all(c, s, &mounts);
	for (int i = 0; i < argc; i++)
		if (umount_one(c, s, &mounts, argv[i]) != CLI_DONE)
			r = CLI_INCOMPLETE;
	mounts_free(&mounts);
	leftover_sweep();
	return r;
}
