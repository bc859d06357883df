/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs unstage: remove what was staged, and nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/stage.h"
#include "base/cleanup.h"
#include "store/shared/shared.h"

static bool is_old(const struct settings *s, const struct staging_item *it)
{
	return !s->stage.older_given ||
	       (int64_t)time(NULL) - it->used >= (int64_t)s->stage.older;
}

static int unstage_failed(const struct command *c, const struct error *err)
{
	cli_say(c, "%s", err->text);
	return CLI_INCOMPLETE;
}

/* Remove everything that is old enough, and what interrupted processes have left. */
static int unstage_all(const struct command *c, const struct settings *s,
		       struct staging *place)
{
	struct staging_list list;
	struct error err = {0};
	int r = staging_sweep(place, &err), worst = CLI_DONE;

	if (r < 0)
		worst = unstage_failed(c, &err);
	if (staging_list(place, &list, &err) < 0)
		return unstage_failed(c, &err);
	for (size_t i = 0; i < list.list.n; i++) {
		const struct staging_item *it = &list.list.at[i];

		if (it->state != STAGING_READY || !is_old(s, it))
			continue;
		r = staging_remove(place, it->name, s->stage.force, &err);
		if (r < 0 && r != -ENOENT)
			worst = unstage_failed(c, &err);
	}
	staging_list_free(&list);
	return worst;
}

/* Remove the tree of this name if it is old enough. */
static int unstage_name(const struct command *c, const struct settings *s,
			struct staging *place, const char *name)
{
	struct staging_list list;
	struct error err = {0};
	bool young = false;

	if (s->stage.older_given) {
		if (staging_list(place, &list, &err) < 0)
			return unstage_failed(c, &err);
		for (size_t i = 0; i < list.list.n; i++)
			young |= !strcmp(list.list.at[i].name, name) &&
				 !is_old(s, &list.list.at[i]);
		staging_list_free(&list);
	}
	if (young)
		return CLI_DONE;
	return staging_remove(place, name, s->stage.force, &err) < 0
		       ? unstage_failed(c, &err)
		       : CLI_DONE;
}

/* Return true if `dir` is the user's own directory in shared memory. */
static bool is_home(const char *dir)
{
	cleanup_free char *real = realpath(dir, NULL);
	struct staging place;
	bool same;

	if (!real || staging_open(&place, NULL, false, NULL) < 0)
		return false;
	same = !strcmp(real, place.at.path);
	staging_close(&place);
	return same;
}

static int unstage_one(const struct command *c, const struct settings *s,
		       const char *operand)
{
	cleanup_free char *name = session_base_name(operand);
	cleanup_free char *dir = strdup(operand);
	const char *to = s->stage.to;
	struct error err = {0};
	struct staging place;
	char *slash;
	int r;

	if (!name || !dir) {
		cli_say(c, "out of memory for '%s'", operand);
		return CLI_MEMORY;
	}
	for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/';)
		dir[--n] = '\0';
	slash = strrchr(dir, '/');
	if (slash) {
		slash[slash == dir] = '\0';
		to = is_home(dir) ? NULL : dir;
	}
	r = staging_open(&place, to, false, &err);
	if (r < 0) {
		if (r == -ENOENT)
			cli_say(c, "'%s' is not a staged tree", operand);
		else
			cli_say(c, "%s", err.text);
		return CLI_INCOMPLETE;
	}
	r = unstage_name(c, s, &place, name);
	staging_tidy(&place);
	staging_close(&place);
	return r;
}

static int unstage_chunks(const struct command *c, const struct settings *s)
{
	struct shared_summary was;
	struct error err = {0};

	return shared_clear(s->stage.to, &was, &err) < 0
		       ? unstage_failed(c, &err)
		       : CLI_DONE;
}

int cmd_unstage(const struct command *c, struct settings *s, int argc,
		char **argv)
{
	struct error err = {0};
	struct staging place;
	int worst = CLI_DONE, r;

	if (s->all && argc)
		return cli_usage(c, "--all takes no name");
	if (s->stage.chunks && s->stage.older_given)
		return cli_usage(c, "--chunks and --older-than exclude each "
				    "other: shared chunks have no age");
	if (s->stage.chunks) {
		worst = unstage_chunks(c, s);
		if (!argc && !s->all && !s->stage.older_given)
			return worst;
	}
	if (!argc && !s->all && !s->stage.older_given)
		return cli_usage(
			c, "PATH, NAME, --all or --older-than is missing");
	for (int i = 0; i < argc; i++) {
		r = unstage_one(c, s, argv[i]);
		worst = r > worst ? r : worst;
	}
	if (argc)
		return worst;
	r = staging_open(&place, s->stage.to, false, &err);
	if (r == -ENOENT && stage_may_be_empty(s))
		return worst;
	if (r < 0)
		return unstage_failed(c, &err);
	r = unstage_all(c, s, &place);
	worst = r > worst ? r : worst;
	staging_tidy(&place);
	staging_close(&place);
	return worst;
}
