/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: an image as libsquashfuse wants it, something to pread from. */
/*
 * A file is that already, wherever in it the image begins.  An image that is in a
 * decoded stream is copied: not the data, which is most of it, but the metadata,
 * to where they belong in a memory file that is otherwise a hole.  The copy's
 * superblock has no export table, which maps inode numbers for NFS: we do not need
 * it, and libsquashfuse wants it whole.  So an image whose export table cannot be
 * right is copied too.
 */
#include "formats/squashfs/private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* Metadata that are copied at most. */
#define COPY_MAX (UINT64_C(256) << 20)
#define PIECE ((size_t)256 << 10)
#define EXPORT_AT 88 /* in the superblock */

/* Lower *first to the block that the list at `at` begins with. */
static int lower(const struct backing *b, const struct squashfs_super *s,
		 uint64_t at, uint64_t *first, struct error *err)
{
	unsigned char raw[8];
	uint64_t block;
	int r;

	if (at > s->bytes_used || s->bytes_used - at < sizeof raw)
		return 0; /* there is none, or libsquashfuse will complain */
	r = backing_read(b, at, raw, sizeof raw, err);
	if (r < 0)
		return r;
	block = load_le64(raw);
	*first = min_u64(*first, min_u64(at, block));
	return 0;
}

/* Where the metadata begin: before the lists of tables there are their blocks. */
static int first_metadata(const struct backing *b,
			  const struct squashfs_super *s, uint64_t *first,
			  struct error *err)
{
	int r = 0;

	*first = min_u64(s->inodes_at, s->dirs_at);
	if (s->fragments)
		r = lower(b, s, s->fragments_at, first, err);
	if (r == 0)
		r = lower(b, s, s->ids_at, first, err);
	if (r == 0 && s->xattrs_at != SQUASHFS_NO_TABLE)
		r = lower(b, s, s->xattrs_at, first, err);
	return r;
}

static int write_all(int fd, const unsigned char *data, size_t n, uint64_t at,
		     struct error *err)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, data, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_errno(err, done < 0 ? -errno : -ENOSPC,
					   "cannot copy its metadata to "
					   "memory");
		data += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

static int copy_range(int fd, const struct backing *b, uint64_t from,
		      uint64_t end, struct error *err)
{
	cleanup_free unsigned char *piece = malloc(PIECE);

	if (!piece)
		return error_set(err, -ENOMEM, "out of memory");
	while (from < end) {
		size_t n = (size_t)min_u64(PIECE, end - from);
		int r = backing_read(b, from, piece, n, err);

		if (r == 0)
			r = write_all(fd, piece, n, from, err);
		if (r < 0)
			return r;
		from += n;
	}
	return 0;
}

static int copy_image(int fd, const struct backing *b,
		      const struct squashfs_super *s, struct error *err)
{
	unsigned char raw[SQUASHFS_SUPER];
	uint64_t first = 0;
	int r = first_metadata(b, s, &first, err);

	if (r < 0)
		return r;
	if (first < s->bytes_used && s->bytes_used - first > COPY_MAX)
		return error_set(err, -EFBIG,
				 "its metadata, %llu bytes of a compressed "
				 "file, are too much to copy to memory: "
				 "extract the image and mount that",
				 (unsigned long long)(s->bytes_used - first));
	r = backing_read(b, 0, raw, sizeof raw, err);
	if (r < 0)
		return r;
	memset(raw + EXPORT_AT, 0xff, 8);
	if (ftruncate(fd, (off_t)s->bytes_used) < 0)
		return error_errno(err, -errno,
				   "cannot make a file of %llu bytes in memory",
				   (unsigned long long)s->bytes_used);
	r = copy_range(fd, b, max_u64(first, sizeof raw), s->bytes_used, err);
	return r < 0 ? r : write_all(fd, raw, sizeof raw, 0, err);
}

/* Could all of the export table's list be there? */
static bool export_fits(const struct squashfs_super *s)
{
	uint64_t list = div_up((uint64_t)s->inodes * 8, 8192) * 8;

	return s->export_at == SQUASHFS_NO_TABLE ||
	       (s->export_at < s->bytes_used &&
		list <= s->bytes_used - s->export_at);
}

int squashfs_image_open(struct squashfs_image *out, const struct backing *b,
			const struct squashfs_super *s, struct error *err)
{
	int r;

	*out = (struct squashfs_image){.fd = -1};
	if (backing_is_plain(b) && export_fits(s)) {
		r = handles_get(b->handles, b->file, &out->pin, err);
		if (r < 0)
			return r;
		out->handles = b->handles;
		out->fd = out->pin.fd;
		out->offset = b->pos;
		return 0;
	}
	out->fd = memfd_create("tensorfs-squashfs", MFD_CLOEXEC);
	if (out->fd < 0)
		return error_errno(err, -errno, "cannot make a file in memory");
	r = copy_image(out->fd, b, s, err);
	if (r < 0)
		squashfs_image_close(out);
	return r;
}

int squashfs_image_check(struct squashfs_image *im, struct error *err)
{
	return im->handles ? handles_check(im->handles, &im->pin, err) : 0;
}

void squashfs_image_close(struct squashfs_image *im)
{
	if (im->handles)
		handles_put(im->handles, &im->pin);
	else if (im->fd >= 0)
		close(im->fd);
	im->handles = NULL;
	im->fd = -1;
}
