/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs umount: one mount, or all of this user, dead or alive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/mountinfo.h"

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
	return CLI_DONE;
}

/* The last mounted first, so that nested mounts come apart. */
static int umount_all(const struct command *c, const struct settings *s,
		      const struct mount_list *mounts)
{
	long user = (long)getuid();
	int r = CLI_DONE;

	for (size_t i = mounts->n; i-- > 0;) {
		const struct mount_entry *m = &mounts->at[i];
		struct error err = {0};

		if (!mount_is_ours(m) || (user != 0 && mount_user(m) != user))
			continue;
		if (mount_detach(m->point, s->lazy, &err) < 0) {
			cli_say(c, "%s", err.text);
			r = CLI_INCOMPLETE;
		}
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
	if (!s->all && argc == 0)
		return cli_usage(c, "a mount point is missing, or --all");
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
	return r;
}
