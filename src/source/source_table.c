/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats there are; the one that bids most opens the file. */
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/hdf5.h"
#include "source/hdf5_worker.h"

const struct source_ops *const source_table[] = {&source_hdf5, NULL};

/* Enough for an HDF5 signature behind a user block of 8 KiB. */
#define HEAD 16384

static int read_head(const char *path, unsigned char *head, size_t *n,
		     struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, "%s is a directory", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a regular file",
				 path);
	got = pread(fd, head, HEAD, 0);
	if (got < 0)
		return error_errno(err, -errno, "%s", path);
	*n = (size_t)got;
	return 0;
}

/* What else it may be that people take for data. */
static int say_what_it_is(const char *path, const unsigned char *head, size_t n,
			  struct error *err)
{
	if (n == 0)
		return error_set(err, -ENOTSUP, "%s is empty, not an HDF5 file",
				 path);
	/* Opcode PROTO, and protocols 2 to 5; Python's pickletools. */
	if (n > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		return error_set(err, -ENOTSUP,
				 "%s is a Python pickle, which is left alone: "
				 "only the program that wrote it can read it",
				 path);
	return error_set(err, -ENOTSUP, "%s is not an HDF5 file", path);
}

int source_open(const struct source_args *a, struct source **out,
		struct error *err)
{
	const struct source_ops *best = NULL;
	unsigned char head[HEAD];
	int bid, most = 0, r;
	size_t n = 0;

	*out = NULL;
	r = read_head(a->path, head, &n, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; source_table[i]; i++) {
		bid = source_table[i]->probe(head, n, a->path);
		if (bid > most) {
			most = bid;
			best = source_table[i];
		}
	}
	if (!best)
		return say_what_it_is(a->path, head, n, err);
	return best->open(a, out, err);
}

void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

int source_isolate(bool keep_stderr, struct error *err)
{
	return hdf5_isolate_start(keep_stderr, err);
}
