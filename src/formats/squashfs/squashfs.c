/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: the superblock, and which part of the reader does the rest. */
/*
 *	superblock    read and checked here
 *	metadata      walked by libsquashfuse in a child process (child.c), which
 *	              sends a member table back; it is checked as if it came from
 *	              a file
 *	data          read and decoded by blocks.c, by several threads
 *
 * The tables of an image are at its end, so nothing can be read of an image that is
 * shorter than its superblock says.
 *
 * libsquashfuse needs a file descriptor to read from.  An image in a file is read
 * there, wherever in the file it begins.  For an image in a decoded stream, the
 * metadata are copied to the same positions in a memory file; the data, which are
 * most of the image, stay a hole in it.  The superblock of the copy has no export
 * table: that maps inode numbers for NFS, which is not needed here, and
 * libsquashfuse refuses an image where it is incomplete.  So an image whose export
 * table cannot be right is copied, too.
 */
#include "formats/squashfs/private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* "hsqs" in the file; "sqsh" was written by big-endian machines before version 4.0
 * (Linux, fs/squashfs/squashfs_fs.h). */
#define MAGIC UINT32_C(0x73717368)
#define MAGIC_SWAPPED UINT32_C(0x68737173)
#define BLOCK_MIN 4096u
#define BLOCK_MAX (1u << 20)
/* Bytes of metadata that are copied to memory at most. */
#define COPY_MAX (UINT64_C(256) << 20)
#define PIECE ((size_t)256 << 10)
#define EXPORT_AT 88 /* position in the superblock, in bytes */

/* ---- the superblock ------------------------------------------------------ */

int squashfs_probe(const unsigned char *head, size_t n)
{
	if (n < 32)
		return 0;
	if (load_le32(head) == MAGIC)
		return load_le16(head + 28) == 4 ? 100 : 80;
	return load_le32(head) == MAGIC_SWAPPED ? 80 : 0;
}

int squashfs_super_parse(struct squashfs_super *out, const unsigned char *raw,
			 struct error *err)
{
	uint32_t magic = load_le32(raw);
	unsigned major = load_le16(raw + 28);
	unsigned minor = load_le16(raw + 30);

	if (magic == MAGIC_SWAPPED)
		return error_set(err, -ENOTSUP,
				 "it is a big-endian squashfs from before "
				 "version 4.0; unpack it with unsquashfs and "
				 "pack it again");
	if (magic != MAGIC)
		return error_set(err, -EBADMSG, "it is not a squashfs image");
	if (major != 4 || minor != 0)
		return error_set(
			err, -ENOTSUP,
			"it is squashfs %u.%u, but only 4.0 can be read%s",
			major, minor,
			major < 4 ? "; unpack it with unsquashfs and "
				    "pack it again"
				  : "");
	*out = (struct squashfs_super){
		.inodes = load_le32(raw + 4),
		.block_size = load_le32(raw + 12),
		.fragments = load_le32(raw + 16),
		.compressor = load_le16(raw + 20),
		.block_log = load_le16(raw + 22),
		.flags = load_le16(raw + 24),
		.ids = load_le16(raw + 26),
		.root = load_le64(raw + 32),
		.bytes_used = load_le64(raw + 40),
		.ids_at = load_le64(raw + 48),
		.xattrs_at = load_le64(raw + 56),
		.inodes_at = load_le64(raw + 64),
		.dirs_at = load_le64(raw + 72),
		.fragments_at = load_le64(raw + 80),
		.export_at = load_le64(raw + 88),
	};
	if (out->block_log > 20 || out->block_size != 1u << out->block_log)
		return error_set(
			err, -EBADMSG,
			"its superblock is damaged: blocks of %u bytes "
			"are not 2^%u",
			out->block_size, out->block_log);
	return 0;
}

void squashfs_super_info(const struct squashfs_super *s,
			 struct squashfs_info *out)
{
	*out = (struct squashfs_info){
		.bytes_used = s->bytes_used,
		.block_size = s->block_size,
		.inodes = s->inodes,
		.fragments = s->fragments,
		.compressor = s->compressor,
		.flags = s->flags,
	};
}

static int check_squashfs_compressor(unsigned id, struct error *err)
{
	const struct squashfs_codec *c = squashfs_codec(id);

	if (!c)
		return error_set(err, -ENOTSUP,
				 "its compressor, number %u, is unknown", id);
	if (c->codec)
		return 0;
	if (id == 2)
		return error_set(err, -ENOTSUP,
				 "it is compressed with lzma, which no kernel "
				 "reads either; pack it again with xz");
	return error_set(err, -ENOTSUP,
			 "it is compressed with %s, but this tensorfs was "
			 "built without %s",
			 c->name, id == 3 ? "liblzo2" : "liblzma");
}

int squashfs_info_check(const struct squashfs_info *info,
			const struct backing *b, struct error *err)
{
	uint32_t size = info->block_size;

	if (check_squashfs_compressor(info->compressor, err) < 0)
		return -ENOTSUP;
	if (size < BLOCK_MIN || size > BLOCK_MAX || (size & (size - 1)))
		return error_set(
			err, -EBADMSG,
			"its superblock is damaged: blocks of %u bytes", size);
	if (info->bytes_used < SQUASHFS_SUPER || !info->inodes ||
	    info->fragments > info->bytes_used)
		return error_set(err, -EBADMSG,
				 "its superblock is damaged: %u inodes and %u "
				 "fragments in %llu bytes",
				 info->inodes, info->fragments,
				 (unsigned long long)info->bytes_used);
	if (info->bytes_used > b->size)
		return error_set(err, -EBADMSG,
				 "it is truncated: it has %llu of its %llu "
				 "bytes, and the tables at its end are missing",
				 (unsigned long long)b->size,
				 (unsigned long long)info->bytes_used);
	return 0;
}

static int read_squashfs_super(const struct backing *b,
			       struct squashfs_super *out, struct error *err)
{
	unsigned char raw[SQUASHFS_SUPER];
	int r;

	if (b->size < sizeof raw)
		return error_set(err, -EBADMSG,
				 "it is truncated: %llu bytes are shorter than "
				 "a superblock",
				 (unsigned long long)b->size);
	r = backing_read(b, 0, raw, sizeof raw, err);
	return r < 0 ? r : squashfs_super_parse(out, raw, err);
}

/* ---- an image with a file descriptor -------------------------------------- */

/* Lower *first to the position of the first block of the list at `at`. */
static int lower_to_first_block(const struct backing *b,
				const struct squashfs_super *s, uint64_t at,
				uint64_t *first, struct error *err)
{
	unsigned char raw[8];
	uint64_t block;
	int r;

	if (at > s->bytes_used || s->bytes_used - at < sizeof raw)
		return 0; /* no list; libsquashfuse complains if it needs one */
	r = backing_read(b, at, raw, sizeof raw, err);
	if (r < 0)
		return r;
	block = load_le64(raw);
	*first = min_u64(*first, min_u64(at, block));
	return 0;
}

/* Set *first to where the metadata begin.  The blocks of a table lie in front of
 * its list. */
static int find_first_metadata(const struct backing *b,
			       const struct squashfs_super *s, uint64_t *first,
			       struct error *err)
{
	int r = 0;

	*first = min_u64(s->inodes_at, s->dirs_at);
	if (s->fragments)
		r = lower_to_first_block(b, s, s->fragments_at, first, err);
	if (r == 0)
		r = lower_to_first_block(b, s, s->ids_at, first, err);
	if (r == 0 && s->xattrs_at != SQUASHFS_NO_TABLE)
		r = lower_to_first_block(b, s, s->xattrs_at, first, err);
	return r;
}

static int write_metadata_copy(int fd, const unsigned char *data, size_t n,
			       uint64_t at, struct error *err)
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

static int copy_metadata_range(int fd, const struct backing *b, uint64_t from,
			       uint64_t end, struct error *err)
{
	cleanup_free unsigned char *piece = malloc(PIECE);

	if (!piece)
		return error_no_memory(err, "a copy of the metadata");
	while (from < end) {
		size_t n = (size_t)min_u64(PIECE, end - from);
		int r = backing_read(b, from, piece, n, err);

		if (r == 0)
			r = write_metadata_copy(fd, piece, n, from, err);
		if (r < 0)
			return r;
		from += n;
	}
	return 0;
}

static int copy_metadata(int fd, const struct backing *b,
			 const struct squashfs_super *s, struct error *err)
{
	unsigned char raw[SQUASHFS_SUPER];
	uint64_t first = 0;
	int r = find_first_metadata(b, s, &first, err);

	if (r < 0)
		return r;
	if (first < s->bytes_used && s->bytes_used - first > COPY_MAX)
		return error_set(err, -EFBIG,
				 "its metadata, %llu bytes of a compressed "
				 "file, are too large to copy to memory: "
				 "decompress the image and mount that",
				 (unsigned long long)(s->bytes_used - first));
	r = backing_read(b, 0, raw, sizeof raw, err);
	if (r < 0)
		return r;
	memset(raw + EXPORT_AT, 0xff, 8);
	if (ftruncate(fd, (off_t)s->bytes_used) < 0)
		return error_errno(err, -errno,
				   "cannot make a file of %llu bytes in memory",
				   (unsigned long long)s->bytes_used);
	r = copy_metadata_range(fd, b, max_u64(first, sizeof raw),
				s->bytes_used, err);
	return r < 0 ? r : write_metadata_copy(fd, raw, sizeof raw, 0, err);
}

/* Return true if the image has no export table, or room for all of its list. */
static bool export_fits(const struct squashfs_super *s)
{
	uint64_t list = div_up((uint64_t)s->inodes * 8, 8192) * 8;

	return s->export_at == SQUASHFS_NO_TABLE ||
	       (s->export_at < s->bytes_used &&
		list <= s->bytes_used - s->export_at);
}

static int squashfs_image_check(struct squashfs_image *im, struct error *err)
{
	return im->handles ? handles_check(im->handles, &im->pin, err) : 0;
}

static void squashfs_image_close(struct squashfs_image *im)
{
	if (im->handles)
		handles_put(im->handles, &im->pin);
	else if (im->fd >= 0)
		close(im->fd);
	im->handles = NULL;
	im->fd = -1;
}

static int squashfs_image_open(struct squashfs_image *out,
			       const struct backing *b,
			       const struct squashfs_super *s,
			       struct error *err)
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
	r = copy_metadata(out->fd, b, s, err);
	if (r < 0)
		squashfs_image_close(out);
	return r;
}

/* ---- from an image to a member table -------------------------------------- */

static int walk_squashfs_image(const struct backing *b,
			       const struct squashfs_super *s,
			       const struct squashfs_info *info,
			       const struct members_options *o,
			       struct members *out, squashfs_beat *so_far,
			       void *ctx, struct error *err)
{
	struct squashfs_image im;
	int r = squashfs_image_open(&im, b, s, err), same;
	struct error stale;

	if (r < 0)
		return r;
	r = squashfs_walk_in_child(&im, info, o, out, so_far, ctx, err);
	same = squashfs_image_check(&im, &stale);
	if (same < 0) { /* a changed source explains any other error */
		if (r == 0)
			members_free(out);
		*err = stale;
		r = same;
	}
	squashfs_image_close(&im);
	return r;
}

int squashfs_members(const struct backing *b, const struct members_options *o,
		     struct members *out, struct squashfs_info *info,
		     squashfs_beat *so_far, void *ctx, struct error *err)
{
	struct squashfs_super s = {0};
	struct error why;
	int r = read_squashfs_super(b, &s, &why);

	if (r == 0) {
		squashfs_super_info(&s, info);
		r = squashfs_info_check(info, b, &why);
	}
	if (r == 0)
		r = walk_squashfs_image(b, &s, info, o, out, so_far, ctx, &why);
	if (r < 0) {
		error_prefix(&why, "%s: ", backing_name(b));
		if (err)
			*err = why;
		return r;
	}
	out->backing_size = b->size;
	return 0;
}
