/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy a file: as a reflink, by the kernel, or through memory. */
#include "tensors/copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PIECE ((size_t)8 << 20) /* bytes between two checks of *stop */
#define BUFFER ((size_t)1 << 20)

static int copy_failed(struct error *err, int code)
{
	return error_errno(err, code, "cannot copy");
}

/* Return the number of bytes copied from `at` on, 0 at the end, or -errno. */
static ssize_t by_kernel(int from, int to, off_t at)
{
	off_t in = at, out = at;
	ssize_t n = copy_file_range(from, &in, to, &out, PIECE, 0);

	return n < 0 ? -errno : n;
}

static ssize_t by_hand(int from, int to, off_t at, void *buf)
{
	ssize_t n = pread(from, buf, BUFFER, at), done = 0;

	if (n < 0)
		return -errno;
	while (done < n) {
		ssize_t w = pwrite(to, (char *)buf + done, (size_t)(n - done),
				   at + done);

		if (w < 0 && errno != EINTR)
			return -errno;
		done += w < 0 ? 0 : w;
	}
	return n;
}

int copy_file(int from, int to, const _Atomic int *stop, struct error *err)
{
	cleanup_free void *buf = NULL;
	bool kernel = true;
	struct stat st;
	off_t at = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	if (fstat(from, &st) < 0)
		return copy_failed(err, -errno);
	while (at < st.st_size) {
		ssize_t n = kernel ? by_kernel(from, to, at)
				   : by_hand(from, to, at, buf);

		if (*stop)
			return error_set(err, -EINTR, "interrupted");
		if (n == -EINTR)
			continue;
		/* copy_file_range may fail for many reasons: copy through memory
		 * instead. */
		if (n <= 0 && kernel && n != -ENOSPC && n != -EDQUOT) {
			kernel = false;
			buf = malloc(BUFFER);
			if (!buf)
				return error_no_memory(
					err, "a buffer to copy files");
			continue;
		}
		if (n <= 0)
			return n ? copy_failed(err, (int)n)
				 : error_set(err, -ESTALE,
					     "it became shorter while it was "
					     "copied");
		at += n;
	}
	return 0;
}
