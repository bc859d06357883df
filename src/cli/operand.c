/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands "SOURCE[:PATH]": find where the name of the file ends and the path in its tree
 * begins. */

/*
 * A file name may contain colons, so the files that exist decide: the source is the whole
 * text if it names a file, else the longest part before a colon that names one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli.h"
#include "base/cleanup.h"
#include "formats/hdf5/file/members.h"
#include "members/index.h"

char *session_base_name(const char *path)
{
	size_t end = strlen(path), begin;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
		;
	return strndup(path + begin, end - begin);
}

bool operand_split(const char *text, struct operand *out)
{
	size_t end = strlen(text), cut = end;

	out->source = strdup(text);
	if (out->source && access(text, F_OK) < 0) {
		for (size_t i = end; i-- > 0;) {
			if (text[i] != ':')
				continue;
			out->source[i] = '\0';
			if (cut == end)
				cut = i;
			if (access(out->source, F_OK) == 0) {
				cut = i;
				break;
			}
		}
		/* No part names a file: cut at the last colon, which is the most likely
		 * meaning, for the sentence. */
		memcpy(out->source, text, end);
		out->source[cut] = '\0';
	}
	out->path = strdup(cut < end ? text + cut + 1 : "");
	if (out->source && out->path)
		return true;
	operand_free(out);
	return false;
}

static int drop_indexes(const struct command *c, char **argv, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (index_is_file(AT_FDCWD, argv[i]))
			cli_say(c,
				"note: '%s' is left out: it is the index of an "
				"archive, not a source",
				argv[i]);
		else
			argv[kept++] = argv[i];
	return kept;
}

/* Replace each pattern such as "x_%d.h5" by the path of its first file, from which the
 * directory and the mode of a source are taken.  Return 0 or -ENOMEM. */
static int operands_first_files(char **argv, int n)
{
	for (int i = 0; i < n; i++) {
		char *first;
		int r = hdf5_members_first(argv[i], &first);

		if (r < 0)
			return r;
		if (r == 0)
			argv[i] = first; /* never freed */
	}
	return 0;
}

int operands_check(const struct command *c, char **argv, int *n)
{
	int indexes = 0;

	for (int i = 0; i < *n; i++) {
		if (!*argv[i])
			return cli_usage(c,
					 "operand %d is empty (an unset "
					 "variable?): %s",
					 i + 1, c->operands);
		indexes += c->sources && index_is_file(AT_FDCWD, argv[i]);
	}
	if (indexes && (unsigned)(*n - indexes) >= c->min_operands)
		*n = drop_indexes(c, argv, *n);
	if (c->sources && operands_first_files(argv, *n) < 0) {
		cli_say(c, "out of memory for the operands");
		return CLI_MEMORY;
	}
	return 0;
}

void operand_free(struct operand *o)
{
	free(o->source);
	free(o->path);
	o->source = o->path = NULL;
}

int operand_open(const struct command *c, const struct settings *s,
		 const char *text, unsigned prefetch, struct operand *o,
		 struct session **session, struct node *node)
{
	struct settings look = *s;
	struct error err = {0};
	int r;

	look.looks = true;
	*session = NULL;
	if (!operand_split(text, o)) {
		cli_say(c, "out of memory for '%s'", text);
		return CLI_MEMORY;
	}
	r = session_open(session, &o->source, 1, &look, prefetch, &err);
	if (r == 0)
		r = source_isolate(true, &err);
	if (r < 0) {
		session_free(*session);
		*session = NULL;
		cli_say(c, "%s", err.text);
		operand_free(o);
		return cli_source_exit(r);
	}
	r = operand_find(c, o, *session, node);
	if (r != 0) {
		session_free(*session);
		*session = NULL;
		operand_free(o);
	}
	return r;
}

int operand_find(const struct command *c, const struct operand *o,
		 struct session *session, struct node *node)
{
	struct error err = {0};

	if (tree_walk(fs_tree(session->fs), o->path, node, &err) == 0)
		return 0;
	cli_say(c, "%s: %s", o->source, err.text);
	return CLI_INCOMPLETE;
}

void cli_read_failed(const struct command *c, struct fs *fs, uint64_t ino,
		     const char *path, int code)
{
	char why[512];

	/* fs has logged its own sentence already. */
	fs_last_error(fs, ino, why, sizeof why);
	if (!why[0])
		cli_say(c, "%s: %s", path, strerror(-code));
}
