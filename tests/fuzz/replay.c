/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a fuzz target over stored inputs: files, and files in directories. */
/*
 * Stands in for libFuzzer's main, so that `make check` holds every input that
 * once did harm, and the seeds, against any build.  Each input is given in a
 * block of its own size, so that sanitizers see reads beyond it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "fuzz.h"

#ifndef WITH_LIBFUZZER
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static unsigned long replayed;

static void die(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(1);
}

static void replay_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");

	if (!f || !data)
		die(path);
	if (size && fread(data, size, 1, f) != 1)
		die(path);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed++;
}

static void replay(const char *path)
{
	struct dirent **names;
	struct stat st;
	int n;

	if (stat(path, &st) != 0)
		die(path);
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path, (size_t)st.st_size);
		return;
	}
	n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		die(path);
	for (int i = 0; i < n; i++) {
		char child[4096];

		snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			replay(child);
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%lu inputs replayed\n", replayed);
	return replayed ? 0 : 1;
}
#endif
