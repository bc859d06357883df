/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that are appended once and read at any offset, and need not all be in
 * memory. */
#include "stream/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"

/*
 * Bytes [0, head) are in memory; byte `at` of [head, size) is in the file at base + (at
 * - head).  Once the file has been begun no byte is added in memory, so one number
 * tells the two apart, and a read needs no lock.
 */
struct blob {
	unsigned char *mem;
	/* Bytes in memory, allocated, and their upper bound. */
	size_t head, room, memory;
	uint64_t size, base;
	int fd; /* -1: none yet */
	char *dir;
};

static struct blob *blob_alloc(int fd)
{
	struct blob *b = calloc(1, sizeof *b);

	if (b)
		b->fd = fd;
	else if (fd >= 0)
		close(fd);
	return b;
}

int blob_new(struct blob **out, size_t memory, const char *dir,
	     struct error *err)
{
	struct blob *b = blob_alloc(-1);

	*out = NULL;
	if (!dir)
		dir = getenv("TMPDIR");
	if (!dir || !*dir)
		dir = "/tmp";
	if (b)
		b->dir = strdup(dir);
	if (!b || !b->dir) {
		free(b);
		return error_no_memory(err, "the states of a decoder");
	}
	b->memory = memory;
	*out = b;
	return 0;
}

int blob_of_file(struct blob **out, int fd, uint64_t pos, uint64_t size,
		 struct error *err)
{
	struct blob *b = blob_alloc(fd);

	*out = NULL;
	if (!b)
		return error_no_memory(err, "the states of a decoder");
	b->base = pos;
	b->size = size;
	*out = b;
	return 0;
}

int blob_of_memory(struct blob **out, const void *data, size_t size,
		   struct error *err)
{
	struct blob *b = blob_alloc(-1);

	*out = NULL;
	if (b)
		b->mem = malloc(size ? size : 1);
	if (!b || !b->mem) {
		free(b);
		return error_no_memory(err, "the states of a decoder");
	}
	if (size)
		memcpy(b->mem, data, size);
	b->size = b->head = b->room = b->memory = size;
	*out = b;
	return 0;
}

void blob_free(struct blob *b)
{
	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	free(b->mem);
	free(b->dir);
	free(b);
}

uint64_t blob_size(const struct blob *b)
{
	return b->size;
}

/* ---- appending ----------------------------------------------------------- */

static bool blob_append_memory(struct blob *b, const void *data, size_t n)
{
	size_t room = b->room;
	unsigned char *mem;

	if (n > b->room - b->head) {
		room = (size_t)max_u64(b->head + n,
				       min_u64(b->memory, room * 2));
		mem = realloc(b->mem, room);
		if (!mem)
			return false;
		b->mem = mem;
		b->room = room;
	}
	memcpy(b->mem + b->head, data, n);
	b->head += n;
	return true;
}

/* Open a file that no other process can find, and that is gone when it is closed.
 * Return its descriptor or -errno. */
static int blob_temporary_file(const char *dir, struct error *err)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	cleanup_free char *name = NULL;

	if (fd >= 0)
		return fd;
	if (asprintf(&name, "%s/tensorfs-XXXXXX", dir) < 0) {
		name = NULL;
		return error_no_memory(err, "the states of a decoder");
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, -errno,
				   "cannot create a temporary file in %s (set "
				   "TMPDIR to another directory)",
				   dir);
	unlink(name);
	return fd;
}

static int blob_append_file(struct blob *b, const unsigned char *data, size_t n,
			    struct error *err)
{
	uint64_t pos = b->base + (b->size - b->head);

	int fd = b->fd < 0 ? blob_temporary_file(b->dir, err) : b->fd;

	if (fd < 0)
		return fd;
	b->fd = fd;
	for (size_t done = 0; done < n;) {
		ssize_t w = pwrite(b->fd, data + done, n - done,
				   (off_t)(pos + done));

		if (w < 0 && errno != EINTR)
			return error_errno(err, -errno,
					   "cannot write a temporary file in "
					   "%s (see TMPDIR)",
					   b->dir);
		if (w > 0)
			done += (size_t)w;
	}
	return 0;
}

int blob_append(struct blob *b, const void *data, size_t n, uint64_t *at,
		struct error *err)
{
	bool fits = b->size == b->head && b->head <= b->memory &&
		    n <= b->memory - b->head;
	int r;

	if (!b->dir && !fits) /* a blob of existing bytes does not grow */
		return error_set(err, -EINVAL,
				 "complete states cannot be added to");
	if (!n || (fits && blob_append_memory(b, data, n))) {
		r = 0;
	} else {
		r = blob_append_file(b, data, n, err);
		if (r < 0)
			return r;
	}
	*at = b->size;
	b->size += n;
	return 0;
}

/* ---- reading ------------------------------------------------------------- */

static int blob_too_short(struct error *err)
{
	return error_set(
		err, -EBADMSG,
		"the stored decoder states end before the one that is needed");
}

int blob_read(const struct blob *b, uint64_t at, void *to, size_t n,
	      struct error *err)
{
	unsigned char *p = to;
	size_t here;
	ssize_t got;

	if (at > b->size || n > b->size - at)
		return blob_too_short(err);
	if (at < b->head && n > 0) {
		here = (size_t)min_u64(n, b->head - at);
		memcpy(p, b->mem + at, here);
		p += here;
		at += here;
		n -= here;
	}
	if (!n)
		return 0;
	got = file_read(b->fd, b->base + (at - b->head), p, n);
	if (got < 0)
		return error_errno(err, (int)got, "states of a decoder");
	return (size_t)got < n ? blob_too_short(err) : 0;
}
