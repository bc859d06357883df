/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and starts the program behind `tensorfs verify --against=READER`. */

/*
 * Readers are packages of Python (h5py, zarr) or other programs (unsquashfs), so the
 * comparison is a Python program, contrib/strangers in the source tree.  It mounts the
 * source with this program, as a user would.
 */
#include "app/against.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HELPER "strangers"

/* The readers to compare with: this list must equal that of contrib/against/kinds.py. */
static const char *const readers[] = {"auto",     "h5py", "tar",   "zip",
				      "squashfs", "zarr", "numpy", "parquet",
				      "arrow",    NULL};

/* Options that have a meaning for the comparison; all others change what is mounted. */
static const char *const allowed[] = {"against",  "json",   "quiet",
				      "progress", "prefix", NULL};

static bool is_listed(const char *const *list, const char *word)
{
	while (*list && strcmp(*list, word))
		list++;
	return *list != NULL;
}

int against_check_reader(const char *reader, struct error *err)
{
	if (is_listed(readers, reader))
		return 0;
	return error_set(err, -EINVAL,
			 "unknown reader '%s'; known are auto (detected from "
			 "the file), h5py, tar, zip, squashfs, "
			 "zarr, numpy, parquet, arrow",
			 reader);
}

static int check_against_options(const struct command *c,
				 const struct settings *s)
{
	for (size_t i = 0; i < s->n_given; i++)
		if (!is_listed(allowed, s->given[i]))
			return cli_usage(c,
					 "--%s cannot be combined with "
					 "--against, which compares the whole "
					 "source as it is mounted without "
					 "options",
					 s->given[i]);
	return CLI_DONE;
}

/* Return the path of this program's executable (malloc'ed), NULL if it is not known. */
static char *own_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path);

	return n > 0 && n < (ssize_t)sizeof path ? strndup(path, (size_t)n)
						 : NULL;
}

/* Return the path of the helper (malloc'ed), NULL if there is none.  It is looked for
 * beside the program (a build tree), then relative to the program (an installation that
 * was moved), then where it was installed. */
static char *find_helper(const char *self)
{
	static const char *const beside[] = {
		"/contrib/" HELPER, "/../libexec/tensorfs/" HELPER, NULL};
	size_t dir = (size_t)(strrchr(self, '/') - self);
	char *path = NULL;

	for (const char *const *b = beside; *b; b++) {
		if (asprintf(&path, "%.*s%s", (int)dir, self, *b) < 0)
			return NULL;
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return access(PKGLIBEXECDIR "/" HELPER, R_OK) == 0
		       ? strdup(PKGLIBEXECDIR "/" HELPER)
		       : NULL;
}

static const char *find_python(void)
{
	const char *python = getenv("TENSORFS_PYTHON");

	if (python && *python)
		return python;
	/* This is the Python that the distribution's packages belong to, whatever PATH
	 * says. */
	return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3"
						     : "python3";
}

static int run_helper(const struct command *c, const struct settings *s,
		      const char *source, const char *helper, const char *self)
{
	cleanup_free char *program = NULL, *reader = NULL, *prefix = NULL;
	const char *python = find_python(), *argv[16];
	size_t n = 0;

	if (asprintf(&program, "--tensorfs=%s", self) < 0 ||
	    asprintf(&reader, "--verify=%s", s->against) < 0 ||
	    asprintf(&prefix, "--option=--prefix=%s",
		     s->prefix ? s->prefix : "") < 0) {
		cli_say(c, "out of memory for the arguments of the comparison");
		return CLI_MEMORY;
	}
	argv[n++] = python;
	argv[n++] = helper;
	argv[n++] = program;
	argv[n++] = reader;
	if (s->json)
		argv[n++] = "--json";
	if (s->quiet)
		argv[n++] = "--quiet";
	if (s->prefix)
		argv[n++] = prefix;
	argv[n++] = "--";
	argv[n++] = source;
	argv[n] = NULL;
	execvp(python, (char *const *)(uintptr_t)argv);
	cli_say(c,
		"--against needs Python 3: cannot run '%s': %s; install "
		"python3, or name another with TENSORFS_PYTHON",
		python, strerror(errno));
	return CLI_INCOMPLETE;
}

/* Check that the source exists.  A path behind it is refused, because the whole source is
 * compared. */
static int check_source(const struct command *c, const char *source)
{
	struct operand o;
	int r = CLI_DONE;

	if (!operand_split(source, &o)) {
		cli_say(c, "out of memory for the name of the source");
		return CLI_MEMORY;
	}
	if (access(o.source, F_OK) < 0) {
		cli_say(c, "%s: %s", o.source, strerror(errno));
		r = CLI_SOURCE;
	} else if (*o.path) {
		r = cli_usage(c,
			      "--against compares a whole source: leave out "
			      "':%s'",
			      o.path);
	}
	operand_free(&o);
	return r;
}

int against_exec(const struct command *c, const struct settings *s,
		 const char *source)
{
	cleanup_free char *self = own_path();
	cleanup_free char *helper = self ? find_helper(self) : NULL;
	int r = check_against_options(c, s);

	if (r == CLI_DONE)
		r = check_source(c, source);
	if (r != CLI_DONE)
		return r;
	if (!helper) {
		cli_say(c,
			"--against needs the program %s, which is not in %s: "
			"install tensorfs as a whole",
			HELPER, PKGLIBEXECDIR);
		return CLI_INCOMPLETE;
	}
	return run_helper(c, s, source, helper, self);
}
