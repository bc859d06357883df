/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs cat: write the bytes of a file of the tree without mounting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli.h"
#include "base/cleanup.h"
#include "base/system.h"

#define CAT_BYTES (1u << 20)

/* Write `n` bytes to standard output.  Return 0 or -errno. */
static int cat_write_all(const char *data, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDOUT_FILENO, data, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		data += w;
		n -= (size_t)w;
	}
	return 0;
}

static int copy_out(const struct command *c, struct fs *fs,
		    const struct node *node, const char *name)
{
	cleanup_free char *buf = malloc(CAT_BYTES);
	uint64_t off = 0;

	if (node->type != S_IFREG) {
		cli_say(c, "%s is %s", name,
			node->type == S_IFDIR ? "a directory"
					      : "not a regular file");
		return CLI_INCOMPLETE;
	}
	if (!buf) {
		cli_say(c, "out of memory for a buffer");
		return CLI_MEMORY;
	}
	for (;;) {
		ssize_t n = fs_read_copy(fs, node->ino, off, buf, CAT_BYTES);
		int r;

		if (n < 0) {
			cli_read_failed(c, fs, node->ino, name, (int)n);
			return n == -ENOMEM ? CLI_MEMORY : CLI_INCOMPLETE;
		}
		if (n == 0)
			return CLI_DONE;
		r = cat_write_all(buf, (size_t)n);
		if (r < 0) {
			/* The process that reads the pipe has closed it, so no sentence
			 * is needed. */
			if (r != -EPIPE)
				cli_say(c,
					"cannot write to standard output: %s",
					strerror(-r));
			return CLI_INCOMPLETE;
		}
		off += (uint64_t)n;
	}
}

/* The source that is open, and the operand that named it. */
struct opened {
	struct operand o;
	struct session *session; /* NULL: no source is open */
};

static void close_source(struct opened *at)
{
	if (at->session) {
		session_free(at->session);
		operand_free(&at->o);
	}
	at->session = NULL;
}

/* Close the open source, open that of `text` and start its threads.  Return 0, or an exit
 * code whose sentence has been printed. */
static int cat_open_source(const struct command *c, struct settings *s,
			   const char *text, struct opened *at,
			   struct node *node)
{
	struct error err = {0};
	int r;

	close_source(at);
	r = operand_open(c, s, text, system_cores(), &at->o, &at->session,
			 node);
	if (r == 0 && session_start(at->session, &err) < 0) {
		cli_say(c, "%s", err.text);
		close_source(at);
		r = CLI_MEMORY;
	}
	return r;
}

/* Find the file of an operand.  A source that several operands in a row name is opened
 * once.  Return 0 or an exit code. */
static int find_file(const struct command *c, struct settings *s,
		     const char *text, struct opened *at, struct node *node)
{
	struct operand o;
	int r;

	if (!at->session)
		return cat_open_source(c, s, text, at, node);
	if (!operand_split(text, &o)) {
		cli_say(c, "out of memory for '%s'", text);
		return CLI_MEMORY;
	}
	r = strcmp(o.source, at->o.source)
		    ? cat_open_source(c, s, text, at, node)
		    : operand_find(c, &o, at->session, node);
	operand_free(&o);
	return r;
}

int cmd_cat(const struct command *c, struct settings *s, int argc, char **argv)
{
	struct opened at = {.session = NULL};
	int worst = CLI_DONE;

	s->threads = 1;
	for (int i = 0; i < argc; i++) {
		struct node node;
		int r = find_file(c, s, argv[i], &at, &node);

		if (r == CLI_DONE)
			r = copy_out(c, at.session->fs, &node, argv[i]);
		worst = r > worst ? r : worst;
	}
	close_source(&at);
	return worst;
}
