/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which rows of the table of backing files may be shown to other users. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "extent/handles_private.h"

bool handles_confine(struct handles *h, const char *dir)
{
	return guard_add_tree(&h->guard, dir);
}

void handles_watch(struct handles *h)
{
	h->guard.watches = true;
}

/* Return true if the file at `path` exists and is not public.  A file that is missing
 * or cannot be examined does not count: it is checked again when it is opened. */
static bool path_is_private(int cwd, const char *path)
{
	cleanup_close int fd = openat(cwd, path, O_PATH | O_CLOEXEC);
	cleanup_free char *real = NULL;
	char link[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	real = realpath(link, NULL);
	return !real || !guard_is_public(real, &st);
}

const char *handles_private(struct handles *h)
{
	if (h->guard.private_file)
		return h->guard.private_file;
	for (size_t i = 0; i < h->files.n; i++) {
		const struct file *f = &h->files.at[i];
		const char *path = f->part ? f->part->path : h->paths.at[i];

		if (!f->kept && !f->joined && path_is_private(h->cwd, path))
			return path;
	}
	return NULL;
}

void handles_refuse_private(struct handles *h)
{
	h->guard.refuses_private = true;
}

int handles_check_public(struct handles *h, int fd, const struct stat *st,
			 const char *path, struct error *err)
{
	return guard_check(&h->guard, fd, st, path, err);
}
