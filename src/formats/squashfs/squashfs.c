/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: the superblock, and who does what with the rest. */
/*
 *	superblock    read and judged here
 *	metadata      walked by libsquashfuse in a child (formats/squashfs/apart.c); what it
 *	              finds comes back as a member table, and is checked as if it
 *	              came from a file
 *	data          read and decoded by us (formats/squashfs/blocks.c), in parallel
 *
 * An image that ends before its superblock says so has lost its tables, which are
 * last: nothing can be had of it.
 */
#include "formats/squashfs/private.h"

#include <errno.h>

#include "base/number.h"

/* "hsqs" in the file; "sqsh" is that of a big-endian machine, before 4.0. */
#define MAGIC UINT32_C(0x73717368)
#define MAGIC_SWAPPED UINT32_C(0x68737173)
#define BLOCK_MIN 4096u
#define BLOCK_MAX (1u << 20)

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
		return error_set(err, -EBADMSG, "it is no squashfs");
	if (major != 4 || minor != 0)
		return error_set(err, -ENOTSUP,
				 "it is squashfs %u.%u, and only 4.0 can be "
				 "read%s",
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

static int check_compressor(unsigned id, struct error *err)
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
			 "it is compressed with %s, and this tensorfs was "
			 "built without %s",
			 c->name, id == 3 ? "liblzo2" : "liblzma");
}

int squashfs_info_check(const struct squashfs_info *info,
			const struct backing *b, struct error *err)
{
	uint32_t size = info->block_size;

	if (check_compressor(info->compressor, err) < 0)
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
				 "it is cut off: %llu of its %llu bytes are "
				 "there, and squashfs has its lists last",
				 (unsigned long long)b->size,
				 (unsigned long long)info->bytes_used);
	return 0;
}

static int read_super(const struct backing *b, struct squashfs_super *out,
		      struct error *err)
{
	unsigned char raw[SQUASHFS_SUPER];
	int r;

	if (b->size < sizeof raw)
		return error_set(err, -EBADMSG,
				 "it is cut off: %llu bytes are not even a "
				 "superblock",
				 (unsigned long long)b->size);
	r = backing_read(b, 0, raw, sizeof raw, err);
	return r < 0 ? r : squashfs_super_parse(out, raw, err);
}

static int walk_image(const struct backing *b, const struct squashfs_super *s,
		      const struct squashfs_info *info,
		      const struct members_options *o, struct members *out,
		      squashfs_beat *so_far, void *ctx, struct error *err)
{
	struct squashfs_image im;
	int r = squashfs_image_open(&im, b, s, err), same;
	struct error stale;

	if (r < 0)
		return r;
	r = squashfs_walk_apart(&im, info, o, out, so_far, ctx, err);
	same = squashfs_image_check(&im, &stale);
	if (same < 0) { /* which explains everything else */
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
	struct squashfs_super s;
	struct error why;
	int r = read_super(b, &s, &why);

	if (r == 0) {
		squashfs_super_info(&s, info);
		r = squashfs_info_check(info, b, &why);
	}
	if (r == 0)
		r = walk_image(b, &s, info, o, out, so_far, ctx, &why);
	if (r < 0) {
		error_prefix(&why, "%s: ", backing_name(b));
		if (err)
			*err = why;
		return r;
	}
	out->backing_size = b->size;
	return 0;
}
