/* SPDX-License-Identifier: BSD-2-Clause */
/* The command of a run: its arguments, and whether it can be executed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/run.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static size_t count_places(const char *arg)
{
	size_t n = 0;

	for (const char *p = arg; (p = strstr(p, "{}")); p += 2)
		n++;
	return n;
}

static char *command_replace_braces(const char *arg, const char *view)
{
	size_t len = strlen(view);
	char *out = malloc(strlen(arg) + count_places(arg) * len + 1), *to;

	if (!out)
		return NULL;
	for (to = out; *arg;) {
		if (arg[0] == '{' && arg[1] == '}') {
			memcpy(to, view, len);
			to += len;
			arg += 2;
		} else {
			*to++ = *arg++;
		}
	}
	*to = '\0';
	return out;
}

char **run_command_args(char *const *argv, const char *view)
{
	size_t n = 0;
	char **out;

	while (argv[n])
		n++;
	out = calloc(n + 1, sizeof *out);
	for (size_t i = 0; out && i < n; i++) {
		out[i] = command_replace_braces(argv[i], view);
		if (!out[i])
			return NULL;
	}
	return out;
}

static int command_find_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? EACCES : ENOENT;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

int run_command_find(const char *name)
{
	const char *path = getenv("PATH");
	int r = ENOENT;

	if (strstr(name, "{}"))
		return 0; /* it is in the mount */
	if (strchr(name, '/') || !*name)
		return command_find_file(name);
	if (!path)
		return 0; /* execvp() knows where to look */
	for (const char *end; *path; path = end + (*end == ':')) {
		cleanup_free char *file = NULL;
		int found;

		end = strchrnul(path, ':');
		if (asprintf(&file, "%.*s%s%s", (int)(end - path), path,
			     end > path ? "/" : "", name) < 0) {
			file = NULL;
			return 0;
		}
		found = command_find_file(file);
		if (found == 0)
			return 0;
		if (found == EACCES)
			r = EACCES;
	}
	return r;
}

int run_command_failed(const struct command *c, const char *name, int error)
{
	if (error != ENOENT) {
		cli_say(c, "cannot run '%s': %s", name, strerror(error));
		return EXIT_CANNOT_RUN;
	}
	if (strchr(name, '/') && access(name, F_OK) == 0)
		cli_say(c,
			"cannot run '%s': the interpreter in its first line "
			"does not exist",
			name);
	else
		cli_say(c, "cannot run '%s': there is no such command", name);
	return EXIT_NOT_FOUND;
}
