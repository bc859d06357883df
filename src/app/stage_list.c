/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads which sources, and which paths in them, are to be staged under which names. */

/* The operands are SOURCE or SOURCE:PATH, or a list has them.  Each source becomes a
 * directory of its own, with all paths that are named in it.  With --name or --union all
 * sources become one directory, in which each has a directory, as in a mount of them (or
 * which is their union).  A list that comes with a single SOURCE has paths in that
 * source, as for tar -T. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/stage.h"
#include "base/cleanup.h"

struct reading {
	const struct command *c;
	const struct settings *s;
	struct stage_groups *out;
	/* the source that the listed paths are in; NULL if the list has sources */
	const char *only;
	bool one; /* one group for all sources */
};

static int list_no_memory(const struct command *c)
{
	cli_say(c, "out of memory for the list of what is staged");
	return CLI_MEMORY;
}

/* Append a copy.  Return false if out of memory. */
static bool push_copy(struct strings *v, const char *text)
{
	char *copy = strdup(text);

	if (copy && vec_push(v, copy))
		return true;
	free(copy);
	return false;
}

static struct stage_group *stage_group_of(struct reading *rd,
					  const char *source)
{
	struct stage_groups *g = rd->out;
	struct stage_group fresh = {.sources = VEC_EMPTY};

	/* Lists name one source many times, so search from the last group back. */
	for (size_t i = g->list.n; i-- > 0;) {
		struct stage_group *one = &g->list.at[i];

		for (size_t k = one->sources.n; k-- > 0;)
			if (!strcmp(one->sources.at[k], source))
				return one;
	}
	if ((!rd->one || !g->list.n) && !vec_push(&g->list, fresh))
		return NULL;
	return push_copy(&g->list.at[g->list.n - 1].sources, source)
		       ? &g->list.at[g->list.n - 1]
		       : NULL;
}

static int add_named(struct reading *rd, const char *source, const char *path)
{
	struct stage_group *g = stage_group_of(rd, source);
	cleanup_free char *base = NULL;
	cleanup_free char *full = NULL;

	if (!g)
		return list_no_memory(rd->c);
	if (rd->one &&
	    !rd->s->joined) { /* mend_paths undoes this for a single source */
		base = session_base_name(source);
		if (!base || asprintf(&full, "%s/%s", base, path) < 0)
			return list_no_memory(rd->c);
	}
	return push_copy(&g->paths, full ? full : path) ? CLI_DONE
							: list_no_memory(rd->c);
}

static int add_operand(struct reading *rd, const char *text)
{
	struct operand o;
	int r;

	if (!operand_split(text, &o))
		return list_no_memory(rd->c);
	r = add_named(rd, o.source, o.path);
	operand_free(&o);
	return r;
}

static int read_list(struct reading *rd, FILE *f)
{
	char end = rd->s->stage.null ? '\0' : '\n';
	cleanup_free char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int r = CLI_DONE;

	while (r == CLI_DONE && (n = getdelim(&line, &room, end, f)) >= 0) {
		if (n && line[n - 1] == end)
			line[--n] = '\0';
		if (!n)
			continue;
		r = rd->only ? add_named(rd, rd->only, line)
			     : add_operand(rd, line);
	}
	if (r == CLI_DONE && ferror(f)) {
		cli_say(rd->c, "'%s': %s", rd->s->stage.files_from,
			strerror(errno));
		r = CLI_INCOMPLETE;
	}
	return r;
}

static int read_files_from(struct reading *rd)
{
	const char *name = rd->s->stage.files_from;
	FILE *f = strcmp(name, "-") ? fopen(name, "re") : stdin;
	int r;

	if (!f) {
		cli_say(rd->c, "'%s': %s", name, strerror(errno));
		return CLI_INCOMPLETE;
	}
	r = read_list(rd, f);
	if (f != stdin)
		fclose(f);
	if (r == CLI_DONE && !rd->out->list.n) {
		cli_say(rd->c, "'%s' lists nothing to stage", name);
		r = CLI_INCOMPLETE;
	}
	return r;
}

/* If the group has a single source, remove the name of the source from its paths. */
static void mend_paths(struct reading *rd)
{
	struct stage_group *g = rd->out->list.n ? rd->out->list.at : NULL;

	if (!g || !rd->one || rd->s->joined || g->sources.n != 1)
		return;
	for (size_t i = 0; i < g->paths.n; i++) {
		char *path = g->paths.at[i], *slash = strchr(path, '/');

		memmove(path, slash + 1, strlen(slash + 1) + 1);
	}
}

int stage_groups_read(struct stage_groups *out, const struct command *c,
		      const struct settings *s, int argc, char **argv)
{
	struct reading rd = {.c = c, .s = s, .out = out};
	struct operand only = {NULL, NULL};
	int r = CLI_DONE;

	*out = (struct stage_groups){.list = VEC_EMPTY};
	rd.one = s->stage.name || s->joined;
	if (s->stage.files_from && argc == 1) {
		if (!operand_split(argv[0], &only))
			return list_no_memory(c);
		if (!*only.path)
			rd.only = only.source;
	}
	for (int i = 0; r == CLI_DONE && i < argc && !rd.only; i++)
		r = add_operand(&rd, argv[i]);
	if (r == CLI_DONE && s->stage.files_from)
		r = read_files_from(&rd);
	if (r == CLI_DONE)
		mend_paths(&rd);
	operand_free(&only);
	if (r != CLI_DONE)
		stage_groups_free(out);
	return r;
}

void stage_groups_free(struct stage_groups *g)
{
	for (size_t i = 0; i < g->list.n; i++) {
		struct stage_group *one = &g->list.at[i];

		for (size_t k = 0; k < one->sources.n; k++)
			free(one->sources.at[k]);
		for (size_t k = 0; k < one->paths.n; k++)
			free(one->paths.at[k]);
		vec_free(&one->sources);
		vec_free(&one->paths);
	}
	vec_free(&g->list);
}
