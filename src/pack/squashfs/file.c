/* SPDX-License-Identifier: BSD-2-Clause */
/* The image's file, as libsquashfs wants it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pack/squashfs/private.h"

static struct image_file *file_of(const sqfs_file_t *f)
{
	return (struct image_file *)(uintptr_t)f;
}

static int read_at(sqfs_file_t *base, sqfs_u64 at, void *to, size_t n)
{
	struct image_file *f = file_of(base);
	char *p = to;

	while (n > 0) {
		ssize_t r = pread(out_fd(f->out), p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			error_errno(&f->err, r < 0 ? -errno : -EIO,
				    "cannot read back '%s'", f->path);
			return SQFS_ERROR_IO;
		}
		p += r;
		at += (sqfs_u64)r;
		n -= (size_t)r;
	}
	return 0;
}

/* What was written before: the superblock. */
static int write_again(struct image_file *f, sqfs_u64 at, const void *from,
		       size_t n)
{
	const char *p = from;

	while (n > 0) {
		ssize_t r = pwrite(out_fd(f->out), p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			error_errno(&f->err, r < 0 ? -errno : -EIO,
				    "cannot write '%s'", f->path);
			return SQFS_ERROR_IO;
		}
		p += r;
		at += (sqfs_u64)r;
		n -= (size_t)r;
	}
	return 0;
}

static int write_at(sqfs_file_t *base, sqfs_u64 at, const void *from, size_t n)
{
	struct image_file *f = file_of(base);
	uint64_t size = out_size(f->out);

	if (at < size && n <= size - at)
		return write_again(f, at, from, n);
	if (at != size) {
		error_set(&f->err, -EIO,
			  "libsquashfs leaves a hole at byte %llu",
			  (unsigned long long)size);
		return SQFS_ERROR_IO;
	}
	return out_write(f->out, from, n, &f->err) < 0 ? SQFS_ERROR_IO : 0;
}

static sqfs_u64 get_size(const sqfs_file_t *base)
{
	return out_size(file_of(base)->out);
}

static int truncate_to(sqfs_file_t *base, sqfs_u64 size)
{
	struct image_file *f = file_of(base);

	return out_back(f->out, size, &f->err) < 0 ? SQFS_ERROR_IO : 0;
}

void image_file_init(struct image_file *f, struct out *out, const char *path)
{
	memset(f, 0, sizeof *f);
	f->out = out;
	f->path = path;
	f->base.read_at = read_at;
	f->base.write_at = write_at;
	f->base.get_size = get_size;
	f->base.truncate = truncate_to;
}

int image_append(struct image *im, const void *data, size_t n,
		 struct error *err)
{
	return out_write(im->file.out, data, n, err);
}

int image_failed(struct image *im, int sqfs, const char *what,
		 struct error *err)
{
	if (im->file.err.code) {
		if (err)
			*err = im->file.err;
		return im->file.err.code;
	}
	switch (sqfs) {
	case SQFS_ERROR_ALLOC:
		return error_set(err, -ENOMEM, "out of memory");
	case SQFS_ERROR_OVERFLOW:
		return error_set(err, -EFBIG, "squashfs has no room for %s",
				 what);
	default:
		return error_set(err, -EIO, "libsquashfs cannot make %s (%d)",
				 what, sqfs);
	}
}
