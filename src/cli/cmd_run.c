/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs run: mount in a private place while a command runs. */
#include <string.h>

#include "app/cli.h"
#include "app/serving.h"
#include "run/run.h"

static bool goes_private(const struct settings *s)
{
	return s->private_mount == PRIVATE_YES ||
	       (s->private_mount == PRIVATE_AUTO && !fuse_face_may_mount());
}

int cmd_run(const struct command *c, struct settings *s, int argc, char **argv)
{
	struct run run = {.c = c,
			  .s = s,
			  .sources = argv,
			  .n_sources = (size_t)argc,
			  .life = {-1, -1},
			  .control = {-1, -1},
			  .alive = {-1, -1},
			  .lock = -1};
	struct error err = {0};
	int r;

	if (!s->command || !s->command[0])
		return cli_usage(c, "a command is missing: %s", c->operands);
	r = run_command_find(s->command[0]);
	if (r != 0)
		return run_command_failed(c, s->command[0], r);
	r = sources_prepare(c, s, argv, (size_t)argc);
	if (r != 0)
		return r;
	serving_threads(s);
	run_place_sweep();
	if (goes_private(s) && run_private_enter(&err) < 0) {
		cli_say(c, "%s%s", err.text,
			fuse_face_may_mount()
				? "; without --private, fusermount3 is used"
				: "");
		return CLI_MOUNT;
	}
	return run_front(&run);
}
