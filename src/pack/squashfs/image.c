/* SPDX-License-Identifier: BSD-2-Clause */
/* The squashfs sink: writing an image. */

/*
 * Blocks are compressed by code of this folder.  Metadata is written by libsquashfs (of
 * squashfs-tools-ng): inodes, directories, tables of ids, fragments and extended
 * attributes, the superblock, and the compressors.  Calling mksquashfs instead would
 * require it on every cluster; it reads files with a single thread and chooses its own
 * order of data.  The library's block processor is as fast as ours (both compress on all
 * cores), but
 *	- for each file it looks for duplicates among all blocks;
 *	- to it holes are zeros, which have to be copied and looked at, a terabyte of them;
 *	- it packs every file that does not fill a block with others.
 *
 * Layout of an image, and the reasons:
 *
 *	superblock | options of the compressor
 *	data, in the order of the feed (`--order`):
 *		files of a block and more: their blocks; the last one is short, as mksquashfs
 *		makes it, so that reading the end of a file does not decode other files
 *		small files: together in shared blocks ("fragments"), except those that would not
 *		shrink (`auto`): each has a block of its own, stored; so a JPEG is read without
 *		its neighbours, and without decoding
 *	inodes | directories | fragments | export table | ids | extended attributes
 *	zeros, to a multiple of 4 KiB
 *
 * Blocks of 128 KiB are the default, as for mksquashfs.  A random reader of small files
 * decodes a block for each file that is not in a cache, so a larger block costs more than
 * it saves (256 KiB: 1 to 4 % of the image); smaller blocks compress less (64 KiB: 1 to 5
 * %, 32 KiB: 3 to 12 %), and small files that do not shrink are in none of them anyway.
 *
 * The image does not depend, byte for byte, on the number of threads: one thread gives
 * blocks to the others and takes them out in the same order (pack/squashfs/blocks.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/log.h"
#include "base/number.h"
#include "pack/squashfs/private.h"

/* Blocks of a file, at most: the kernel counts them in an int. */
#define BLOCKS_MOST INT32_MAX

static struct image *image_of_sink(struct sink *s)
{
	return (struct image *)s;
}

/* ---- the file, as libsquashfs wants it ----------------------------------- */

static struct image_file *image_file_of(const sqfs_file_t *f)
{
	return (struct image_file *)(uintptr_t)f;
}

static int image_read_at(sqfs_file_t *base, sqfs_u64 at, void *to, size_t n)
{
	struct image_file *f = image_file_of(base);
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

/* Overwrite bytes that were written before: the superblock. */
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

static int image_write_at(sqfs_file_t *base, sqfs_u64 at, const void *from,
			  size_t n)
{
	struct image_file *f = image_file_of(base);
	uint64_t size = out_size(f->out);

	if (at < size && n <= size - at)
		return write_again(f, at, from, n);
	if (at != size) {
		error_set(&f->err, -EIO,
			  "libsquashfs leaves a hole at byte %llu: a defect",
			  (unsigned long long)size);
		return SQFS_ERROR_IO;
	}
	return out_write(f->out, from, n, &f->err) < 0 ? SQFS_ERROR_IO : 0;
}

static sqfs_u64 image_get_size(const sqfs_file_t *base)
{
	return out_size(image_file_of(base)->out);
}

static int image_truncate(sqfs_file_t *base, sqfs_u64 size)
{
	struct image_file *f = image_file_of(base);

	return out_back(f->out, size, &f->err) < 0 ? SQFS_ERROR_IO : 0;
}

static void image_file_init(struct image_file *f, struct out *out,
			    const char *path)
{
	memset(f, 0, sizeof *f);
	f->out = out;
	f->path = path;
	f->base.read_at = image_read_at;
	f->base.write_at = image_write_at;
	f->base.get_size = image_get_size;
	f->base.truncate = image_truncate;
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
		return error_no_memory(err, "the metadata of the image");
	case SQFS_ERROR_OVERFLOW:
		return error_set(err, -EFBIG, "squashfs has no room for %s",
				 what);
	default:
		return error_set(err, -EIO, "libsquashfs cannot make %s (%d)",
				 what, sqfs);
	}
}

/* ---- attributes -------------------------------------------------------------- */

static int id_index(struct image *im, uint32_t id, uint16_t *out,
		    struct error *err)
{
	unsigned slot = (id ^ id >> 8 ^ id >> 16) & 255;
	int r;

	if (!im->id_cache[slot].known || im->id_cache[slot].id != id) {
		r = sqfs_id_table_id_to_index(im->ids, id,
					      &im->id_cache[slot].index);
		if (r == SQFS_ERROR_OVERFLOW)
			return error_set(
				err, -EFBIG,
				"there are more than 65536 users and groups, "
				"which squashfs cannot hold; give all files "
				"one owner with --owner");
		if (r)
			return image_failed(im, r, "the table of ids", err);
		im->id_cache[slot].id = id;
		im->id_cache[slot].known = true;
	}
	*out = im->id_cache[slot].index;
	return 0;
}

static uint32_t time_of(struct image *im, uint64_t entry, int64_t t)
{
	if (t < 0 || t > UINT32_MAX) {
		if (!im->notes.times++)
			im->notes.time_entry = entry;
		t = t < 0 ? 0 : UINT32_MAX;
	}
	return (uint32_t)t;
}

static int set_xattrs(struct image *im, struct image_node *n,
		      const struct feed_unit *u, struct error *err)
{
	int r = sqfs_xattr_writer_begin(im->xattrs, 0);

	for (size_t i = 0; i < u->n_xattrs && r == 0; i++) {
		const struct feed_xattr *x = &u->xattrs[i];

		r = sqfs_xattr_writer_add(im->xattrs, x->name, x->value,
					  x->len);
		if (r == SQFS_ERROR_UNSUPPORTED) {
			if (!im->notes.xattrs++) {
				im->notes.xattr_entry = u->entry;
				snprintf(im->notes.xattr,
					 sizeof im->notes.xattr, "%s", x->name);
			}
			r = 0;
		}
	}
	if (r == 0)
		r = sqfs_xattr_writer_end(im->xattrs, &n->xattr);
	if (r)
		return image_failed(im, r, "extended attributes", err);
	if (n->xattr != IMAGE_NONE && n->xattr >= im->n_xattrs)
		im->n_xattrs = n->xattr + 1;
	return 0;
}

static int set_attr(struct image *im, struct image_node *n,
		    const struct feed_attr *a, struct error *err)
{
	int r = id_index(im, a->uid, &n->uid, err);

	if (r == 0)
		r = id_index(im, a->gid, &n->gid, err);
	n->mode = (uint16_t)a->mode;
	n->mtime = time_of(im, n->entry, a->mtime);
	im->newest = n->mtime > im->newest ? n->mtime : im->newest;
	return r;
}

/* ---- entries ----------------------------------------------------------------- */

static int add_node(struct image *im, uint64_t entry, struct image_node **out,
		    struct error *err)
{
	struct image_node n = {.entry = entry,
			       .fragment = IMAGE_NONE,
			       .xattr = IMAGE_NONE,
			       .same = (uint32_t)im->nodes.n,
			       .links = 1,
			       .blocks = im->sizes.n};

	if (im->nodes.n >= IMAGE_NONE - 1)
		return error_set(err, -EFBIG,
				 "there are too many files for squashfs");
	if (!vec_push(&im->nodes, n))
		return error_no_memory(err, "the list of files");
	*out = &im->nodes.at[im->nodes.n - 1];
	return 0;
}

/* Find the node of an entry that came before; nodes are in order of entries.  Return
 * IMAGE_NONE if there is none. */
static uint32_t find_node(const struct image *im, uint64_t entry)
{
	struct bisect b = bisect_in(1, im->nodes.n);

	while (bisect_next(&b))
		bisect_answer(&b, im->nodes.at[b.mid].entry >= entry);
	return b.lo < im->nodes.n && im->nodes.at[b.lo].entry == entry
		       ? (uint32_t)b.lo
		       : IMAGE_NONE;
}

static int set_same(struct image *im, struct image_node *n,
		    const struct feed_unit *u, struct error *err)
{
	uint32_t first = find_node(im, im->a.scan->list.at[u->entry].same_as);

	if (first == IMAGE_NONE)
		return error_set(err, -EINVAL,
				 "'%s' came before '%s', whose contents it "
				 "shares: a defect",
				 u->path, u->same_as);
	n->same = first;
	im->nodes.at[first].links++;
	return 0;
}

static int image_set_link(struct image *im, struct image_node *n,
			  const struct feed_unit *u, struct error *err)
{
	n->place = im->text.n;
	for (const char *c = u->link;; c++) {
		if (!vec_push(&im->text, *c))
			return error_no_memory(err,
					       "the targets of symbolic links");
		if (!*c)
			return 0;
	}
}

static int image_begin_entry(struct image *im, const struct feed_unit *u,
			     struct error *err)
{
	struct image_node *n;
	int r = add_node(im, u->entry, &n, err);

	if (r < 0)
		return r;
	im->node = n->same;
	im->noted = 0;
	n->size = S_ISREG(u->attr.mode) ? u->attr.size : 0;
	n->mode = (uint16_t)u->attr.mode;
	if (u->same_as)
		return set_same(im, n, u, err);
	if (n->size / im->block >= BLOCKS_MOST)
		return error_set(err, -EFBIG,
				 "'%s' is too large: a file has less than 2^31 "
				 "blocks in squashfs; raise --block-size, or "
				 "leave it out with --exclude",
				 u->path);
	r = set_attr(im, n, &u->attr, err);
	if (r == 0 && u->n_xattrs)
		r = set_xattrs(im, n, u, err);
	if (r == 0 && S_ISLNK(u->attr.mode))
		return image_set_link(im, n, u, err);
	if (S_ISCHR(u->attr.mode) || S_ISBLK(u->attr.mode))
		n->place = u->attr.rdev;
	return r;
}

/* Check that a file has as many blocks as its size says, because readers compute the
 * number. */
static int check_whole(const struct image *im, const struct feed_unit *u,
		       struct error *err)
{
	const struct image_node *n = &im->nodes.at[im->node];

	return im->noted == image_n_blocks(im, n)
		       ? 0
		       : error_set(err, -EIO,
				   "'%s': the number of its bytes differs from "
				   "its size",
				   u->path);
}

static int put_sink_squashfs(struct sink *s, const struct feed_unit *u,
			     struct error *err)
{
	struct image *im = image_of_sink(s);
	int r = 0;

	if (im->a.stop && *im->a.stop)
		return error_set(err, -EINTR, "interrupted");
	if (u->first)
		r = image_begin_entry(im, u, err);
	if (r < 0 || !S_ISREG(u->attr.mode) || u->same_as)
		return r;
	r = u->first && u->last && u->size < im->block
		    ? image_data_small(im, u->data, u->size, err)
		    : image_data_add(im, u->data, u->size, u->last, err);
	return r < 0 || !u->last ? r : check_whole(im, u, err);
}

/* ---- opening and finishing --------------------------------------------------- */

static int add_top(struct image *im, struct error *err)
{
	struct image_node *n;
	int r = add_node(im, UINT64_MAX, &n, err);

	return r < 0 ? r : set_attr(im, n, &im->a.top, err);
}

/* Leave room for the superblock, and write the options of the compressor. */
static int write_head(struct image *im, struct error *err)
{
	sqfs_super_t empty = {0};
	int r = image_append(im, &empty, sizeof empty, err);

	if (r < 0)
		return r;
	r = im->codec.meta.base.write_options(&im->codec.meta.base,
					      &im->file.base);
	im->options = r > 0;
	return r < 0 ? image_failed(im, r, "options", err) : 0;
}

static int image_make(struct image *im, struct error *err)
{
	struct out *out;
	int r = image_codec_open(&im->codec, &im->a.comp, im->block, err);

	if (r < 0)
		return r;
	im->ids = sqfs_id_table_create(0);
	im->fragments = sqfs_frag_table_create(0);
	im->xattrs = sqfs_xattr_writer_create(0);
	if (!im->ids || !im->fragments || !im->xattrs)
		return error_no_memory(err, "the metadata of the image");
	r = image_data_open(im, err);
	if (r == 0)
		r = out_new(&out, im->a.path, 0666, im->a.replace, err);
	if (r < 0)
		return r;
	image_file_init(&im->file, out, im->a.path);
	r = write_head(im, err);
	return r < 0 ? r : add_top(im, err);
}

static void close_sink_squashfs(struct sink *s)
{
	struct image *im = image_of_sink(s);

	image_data_close(im);
	if (im->ids)
		sqfs_destroy(im->ids);
	if (im->fragments)
		sqfs_destroy(im->fragments);
	if (im->xattrs)
		sqfs_destroy(im->xattrs);
	image_codec_close(&im->codec);
	out_free(im->file.out);
	vec_free(&im->nodes);
	vec_free(&im->sizes);
	vec_free(&im->text);
	free(im);
}

static uint64_t image_block_size(const struct sink_args *a)
{
	return a->block ? a->block : SQFS_DEFAULT_BLOCK_SIZE;
}

static int check_sink_squashfs(const struct sink_args *a, struct error *err)
{
	uint64_t block = image_block_size(a);
	struct image_codec codec;
	int r;

	if (block < SQFS_MIN_BLOCK_SIZE || block > SQFS_MAX_BLOCK_SIZE ||
	    block & (block - 1))
		return error_set(err, -EINVAL,
				 "squashfs has blocks of 4K, 8K, 16K, ..., 1M, "
				 "not of %" PRIu64 " bytes",
				 block);
	r = image_codec_open(&codec, &a->comp, (uint32_t)block, err);
	image_codec_close(&codec);
	return r;
}

static int open_sink_squashfs(const struct sink_args *a, struct sink **out,
			      struct error *err)
{
	struct image *im;
	int r = check_sink_squashfs(a, err);

	*out = NULL;
	if (r < 0)
		return r;
	im = calloc(1, sizeof *im);
	if (!im)
		return error_no_memory(err, "the image");
	im->sink.ops = &sink_squashfs;
	im->a = *a;
	im->block = (uint32_t)image_block_size(a);
	r = image_make(im, err);
	if (r < 0) {
		close_sink_squashfs(&im->sink);
		return r;
	}
	*out = &im->sink;
	return 0;
}

static void say_notes(const struct image *im)
{
	const struct image_notes *n = &im->notes;

	if (n->times)
		log_warn("'%s': %" PRIu64
			 " modification times are outside 1970 to 2106, the "
			 "range of squashfs, and were set to its nearest end; "
			 "the first is that of '%s'",
			 im->a.path, n->times,
			 n->time_entry == UINT64_MAX
				 ? "."
				 : scan_path(im->a.scan, n->time_entry));
	if (n->xattrs)
		log_warn("'%s': %" PRIu64
			 " extended attributes were left out, because squashfs "
			 "holds only user.*, trusted.* and security.*; the "
			 "first is %s of '%s'",
			 im->a.path, n->xattrs, n->xattr,
			 scan_path(im->a.scan, n->xattr_entry));
}

static int finish_sink_squashfs(struct sink *s, struct sink_result *r,
				struct error *err)
{
	static const uint64_t unknown[2];
	struct image *im = image_of_sink(s);
	int code = image_data_finish(im, err);

	if (im->a.epoch != INT64_MIN)
		im->newest = time_of(im, UINT64_MAX, im->a.epoch);
	if (code == 0)
		code = image_tree_write(im, err);
	if (code == 0)
		code = sink_publish(&im->a, im->file.out, unknown, err);
	if (code < 0)
		return code;
	say_notes(im);
	memset(r, 0, sizeof *r);
	r->stored = out_size(im->file.out);
	r->codec = im->codec.name;
	return 0;
}

const struct sink_ops sink_squashfs = {
	.name = "squashfs",
	.summary = "an image that the kernel can mount, too",
	.suffixes = ".sqfs .squashfs .squash .sfs .img",
	.sockets = true,
	.check = check_sink_squashfs,
	.open = open_sink_squashfs,
	.put = put_sink_squashfs,
	.finish = finish_sink_squashfs,
	.close = close_sink_squashfs};
