/* SPDX-License-Identifier: BSD-2-Clause */
/* The program: find the command, parse its options, run it. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "cli/options.h"

static void say_line(const struct command *c, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
static void say_line(const struct command *c, const char *fmt, va_list ap)
{
	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, c ? "tensorfs %s: " : "tensorfs: ", c ? c->name : "");
	vfprintf(stderr, fmt, ap);
	putc('\n', stderr);
	funlockfile(stderr);
}

void cli_say(const struct command *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(c, fmt, ap);
	va_end(ap);
}

int cli_usage(const struct command *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(c, fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try 'tensorfs %s%s--help'.\n", c ? c->name : "",
		c ? " " : "");
	return CLI_USAGE;
}

int cli_source_exit(int code)
{
	return code == -ENOMEM        ? CLI_MEMORY
	       : code == SOURCE_USAGE ? CLI_USAGE
				      : CLI_SOURCE;
}

/* True if standard output was closed when the program started. */
static bool output_was_closed;

int cli_flush_report(const struct command *c)
{
	return output_was_closed ? CLI_DONE : cli_flush(c);
}

int cli_flush(const struct command *c)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CLI_DONE;
	if (errno != EPIPE)
		cli_say(c, "cannot write to standard output: %s",
			strerror(errno));
	return CLI_INCOMPLETE;
}

void settings_init(struct settings *s)
{
	memset(s, 0, sizeof *s);
	view_options_default(&s->views);
	s->cache_size = system_memory() / 4;
	s->uid = s->gid = OWNER_DEFAULT;
	s->progress = "auto";
	s->interval = 1;
	s->pack.uid = s->pack.gid = OWNER_DEFAULT;
	s->pack.mtime = INT64_MIN;
}

void settings_free(struct settings *s)
{
	for (size_t i = 0; i < s->n_owned; i++)
		free(s->owned[i]);
	free(s->owned);
	free(s->names);
	free(s->pack.exclude);
	free(s->waits);
	free(s->given);
	s->given = NULL;
	s->n_given = 0;
	s->pack.exclude = NULL;
	s->waits = NULL;
	s->names = NULL;
	s->owned = NULL;
	s->n_owned = 0;
}

char *settings_keep(struct settings *s, const char *text)
{
	char **grown;
	char *copy = strdup(text);

	if (!copy)
		return NULL;
	grown = realloc(s->owned, (s->n_owned + 1) * sizeof *grown);
	if (!grown) {
		free(copy);
		return NULL;
	}
	s->owned = grown;
	s->owned[s->n_owned++] = copy;
	return copy;
}

static void print_help(FILE *out)
{
	fprintf(out,
		"Usage: tensorfs COMMAND [OPTIONS] ...\n"
		"       tensorfs SOURCE... MOUNTPOINT [-o OPTIONS]\n\n"
		"Presents the tensors of HDF5 files, chunked or distributed "
		"over many files,\nas directories of .npy files.\n\n"
		"Commands:\n");
	for (const struct command *c = command_table; c->name; c++)
		fprintf(out, "  %-8s %s\n", c->name, c->summary);
	fprintf(out, "\nOptions:\n  -h, --help                  print this "
		     "help; 'tensorfs COMMAND --help' explains\n               "
		     "               one command\n  -V, --version              "
		     " print the versions of the program and its "
		     "libraries\n\nThe manual: man tensorfs.\n");
}

int cmd_help(const struct command *c, struct settings *s, int argc, char **argv)
{
	const struct command *of;

	(void)s;
	if (argc == 0) {
		print_help(stdout);
		return cli_flush(c);
	}
	of = command_find(argv[0]);
	if (!of)
		return cli_usage(NULL, "there is no command '%s'", argv[0]);
	options_help(of, stdout);
	return cli_flush(c);
}

static int check_operands(const struct command *c, char **argv, int *n)
{
	int r = operands_check(c, argv, n);

	if (r != 0)
		return r;
	if ((unsigned)*n < c->min_operands && c->min_operands == 1)
		return cli_usage(c, "%.*s is missing",
				 (int)strcspn(c->operands, " "), c->operands);
	if ((unsigned)*n < c->min_operands)
		return cli_usage(c, "%s missing: %s",
				 *n ? "an operand is" : "all operands are",
				 c->operands);
	if (c->max_operands && (unsigned)*n > c->max_operands)
		return cli_usage(c, "unexpected argument '%s'; expected %s",
				 argv[c->max_operands], c->operands);
	return 0;
}

static int command_run(const struct command *c, int argc, char **argv)
{
	struct error err = {0};
	struct settings s;
	int n, r;

	settings_init(&s);
	r = options_parse(c, &s, argc, argv, &n, &err);
	if (r == -ENOMEM) {
		cli_say(c, "%s", err.text);
		r = CLI_MEMORY;
	} else if (r < 0) {
		r = cli_usage(c, "%s", err.text);
	} else if (s.help) {
		options_help(c, stdout);
		r = cli_flush(c);
	} else if (s.version) {
		version_print(stdout);
		r = cli_flush(c);
	} else {
		r = check_operands(c, argv, &n);
		if (r == 0)
			r = c->run(c, &s, n, argv);
	}
	settings_free(&s);
	return r;
}

/* The process that started this one may have closed standard descriptors.  Then the
 * next opened files would become standard output and error, and messages would be
 * written into them.  Fill the gaps with descriptors that cannot be written to, so
 * that writing fails. */
static void fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/", O_PATH | O_CLOEXEC);
		output_was_closed |= fd == STDOUT_FILENO;
	} while (fd >= STDIN_FILENO && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct command *c;
	const char *word;

	fill_standard_descriptors();
	system_thread_stacks();
	/* Month names of `ls -l` are in the user's language.  LC_NUMERIC stays "C", as
	 * JSON needs it. */
	setlocale(LC_TIME, "");
	/* Writing to a file that may not grow (an index, under ulimit -f) fails with
	 * EFBIG instead of ending the process. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	word = argv[1];
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(stdout);
		return cli_flush(NULL);
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		version_print(stdout);
		return cli_flush(NULL);
	}
	c = command_find(word);
	if (c)
		return command_run(c, argc - 2, argv + 2);
	/* Without a command, mount: mount(8) calls the program so.  A path that does not
	 * exist is a missing source; any other unknown word is a mistyped command. */
	if (word[0] == '-' || strchr(word, '/') || access(word, F_OK) == 0)
		return command_run(command_find("mount"), argc - 1, argv + 1);
	return cli_usage(NULL, "'%s' is neither a command nor an existing file",
			 word);
}
