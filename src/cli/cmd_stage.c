/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs stage: copy sources to plain files in shared memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/stage.h"

static int stage_one(const struct command *c, struct settings *s,
		     const struct stage_group *g)
{
	struct stage_request q = {.sources = g->sources.at,
				  .n_sources = g->sources.n,
				  .paths = g->paths.at,
				  .n_paths = g->paths.n,
				  .name = s->stage.name};
	struct error err = {0};
	struct staging place;
	struct staged out;
	int r = stage_request(c, s, &q, &place, &out, &err);

	if (r != CLI_DONE) {
		if (err.code == -EINTR && stage_signal())
			cli_say(c, "interrupted: nothing was left behind");
		else
			cli_say(c, "%s", err.text);
		return r;
	}
	printf("%s\n", out.path);
	r = cli_flush(c);
	staging_release(&place, &out);
	staging_close(&place);
	return r;
}

int cmd_stage(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	struct stage_groups groups;
	int worst;

	if (!argc && !s->stage.files_from)
		return cli_usage(c, "SOURCE[:PATH] or --files-from is missing");
	if (s->stage.null && !s->stage.files_from)
		return cli_usage(c, "--null needs --files-from");
	stage_defaults(s);
	worst = stage_groups_read(&groups, c, s, argc, argv);
	if (worst != CLI_DONE)
		return worst;
	s->shared = groups.list.n > 1;
	for (size_t i = 0; i < groups.list.n && !stage_signal(); i++) {
		int r = stage_one(c, s, &groups.list.at[i]);

		worst = r > worst ? r : worst;
	}
	stage_groups_free(&groups);
	stage_die_of_signal();
	return worst;
}
