/* SPDX-License-Identifier: BSD-2-Clause */
/* Inodes and directories of an image. */
#include <endian.h>
#include <errno.h>
#include <sqfs/dir.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pack/squashfs/private.h"

/* From so many entries on, a directory has an index, as mksquashfs makes them. */
#define INDEX_LEAST 256
/* Sizes of blocks that are written at once. */
#define SIZES 2048

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

static int stopped(const struct image_tree *t)
{
	const _Atomic int *stop = t->im->a.stop;

	return stop && *stop ? error_set(t->err, -EINTR, "interrupted") : 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- inodes ------------------------------------------------------------------- */

static void base_of(const struct image_node *n, sqfs_inode_generic_t *i)
{
	i->base.mode = n->mode;
	i->base.uid_idx = n->uid;
	i->base.gid_idx = n->gid;
	i->base.mod_time = n->mtime;
	i->base.inode_number = n->number;
}

static int write_inode(struct image_tree *t, struct image_node *n,
		       const sqfs_inode_generic_t *i)
{
	sqfs_u64 block;
	sqfs_u32 offset;
	int r;

	sqfs_meta_writer_get_position(t->inodes, &block, &offset);
	if (block > UINT32_MAX)
		return error_set(t->err, -EFBIG,
				 "squashfs has no room for so many files");
	n->ref = block << 16 | offset;
	n->written = true;
	r = sqfs_meta_writer_write_inode(t->inodes, i);
	return r ? image_failed(t->im, r, "the table of inodes", t->err) : 0;
}

/* Bytes of a file that are in no block. */
static uint64_t sparse_bytes(const struct image *im, const struct image_node *n)
{
	uint64_t blocks = image_n_blocks(im, n), sum = 0;
	struct image_walk walk = {.at = n->blocks};

	for (uint64_t i = 0; i < blocks; i++)
		if (!image_next(im, &walk))
			sum += i + 1 < blocks ? im->block
					      : n->size - i * im->block;
	/* As mksquashfs: a file with bytes takes room. */
	return sum && sum == n->size ? sum - 1 : sum;
}

/* By hand: libsquashfs puts all of them on the stack. */
static int write_sizes(struct image_tree *t, const struct image_node *n)
{
	uint64_t left = image_n_blocks(t->im, n);
	struct image_walk walk = {.at = n->blocks};
	uint32_t some[SIZES];
	int r = 0;

	while (left && r == 0) {
		unsigned k = 0;

		if (stopped(t) < 0)
			return -EINTR;
		while (k < SIZES && left) {
			some[k++] = htole32(image_next(t->im, &walk));
			left--;
		}
		r = sqfs_meta_writer_append(t->inodes, some, k * sizeof *some);
	}
	return r ? image_failed(t->im, r, "the table of inodes", t->err) : 0;
}

static int write_file(struct image_tree *t, struct image_node *n)
{
	sqfs_inode_generic_t i = {.base.type = SQFS_INODE_EXT_FILE};
	int r;

	base_of(n, &i);
	i.data.file_ext.blocks_start = n->place;
	i.data.file_ext.file_size = n->size;
	i.data.file_ext.sparse = sparse_bytes(t->im, n);
	i.data.file_ext.nlink = n->links;
	i.data.file_ext.fragment_idx = n->fragment;
	i.data.file_ext.fragment_offset =
		n->fragment == IMAGE_NONE ? 0 : n->offset;
	i.data.file_ext.xattr_idx = n->xattr;
	sqfs_inode_make_basic(&i); /* if it can be */
	r = write_inode(t, n, &i);
	return r < 0 ? r : write_sizes(t, n);
}

static int write_link(struct image_tree *t, struct image_node *n)
{
	const char *target = t->im->text.at + n->place;
	size_t len = strlen(target);
	sqfs_inode_generic_t *i = calloc(1, sizeof *i + len + 1);
	int r;

	if (!i)
		return no_memory(t->err);
	i->base.type = SQFS_INODE_SLINK;
	base_of(n, i);
	i->data.slink.nlink = n->links;
	i->data.slink.target_size = (sqfs_u32)len;
	memcpy(i->extra, target, len);
	if (n->xattr != IMAGE_NONE)
		sqfs_inode_set_xattr_index(i, n->xattr);
	r = write_inode(t, n, i);
	free(i);
	return r;
}

static int write_special(struct image_tree *t, struct image_node *n)
{
	sqfs_inode_generic_t i = {0};
	unsigned major_ = major(n->place), minor_ = minor(n->place);

	base_of(n, &i);
	if (S_ISFIFO(n->mode) || S_ISSOCK(n->mode)) {
		i.base.type =
			S_ISFIFO(n->mode) ? SQFS_INODE_FIFO : SQFS_INODE_SOCKET;
		i.data.ipc.nlink = n->links;
	} else {
		i.base.type =
			S_ISBLK(n->mode) ? SQFS_INODE_BDEV : SQFS_INODE_CDEV;
		i.data.dev.nlink = n->links;
		i.data.dev.devno =
			(minor_ & 0xff) | major_ << 8 | (minor_ & ~0xffu) << 12;
	}
	if (n->xattr != IMAGE_NONE)
		sqfs_inode_set_xattr_index(&i, n->xattr);
	return write_inode(t, n, &i);
}

/* ---- directories ---------------------------------------------------------------- */

static int list(struct image_tree *t, const struct image_node *d,
		uint32_t *entries, uint32_t *below)
{
	int r = sqfs_dir_writer_begin(t->dir, 0);

	for (uint32_t i = d->child; i && r == 0; i = image_at(t, i)->next) {
		const struct image_node *n = image_at(t, image_at(t, i)->same);

		r = sqfs_dir_writer_add_entry(
			t->dir, base_name(image_path(t->im, image_at(t, i))),
			n->number, n->ref, n->mode);
		*entries += 1;
		*below += S_ISDIR(n->mode);
	}
	if (r == 0)
		r = sqfs_dir_writer_end(t->dir);
	if (r)
		return image_failed(t->im, r, "a directory", t->err);
	return sqfs_dir_writer_get_size(t->dir) > UINT32_MAX - 3 ||
			       sqfs_dir_writer_get_dir_reference(t->dir) >> 16 >
				       UINT32_MAX
		       ? error_set(t->err, -EFBIG,
				   "'%s': too many names for squashfs",
				   image_path(t->im, d))
		       : 0;
}

/* libsquashfs counts entries of the index in 16 bits.  The first ones are an index, too. */
static void shorten_index(sqfs_inode_generic_t *i)
{
	const char *at = (const char *)i->extra;
	uint32_t used = 0;
	unsigned count = 0;

	if (i->base.type != SQFS_INODE_EXT_DIR)
		return;
	while (used < i->payload_bytes_used && count < UINT16_MAX) {
		sqfs_dir_index_t e;

		memcpy(&e, at + used, sizeof e);
		used += (uint32_t)sizeof e + e.size + 1;
		count++;
	}
	i->payload_bytes_used = used;
	i->data.dir_ext.inodex_count = (sqfs_u16)count;
}

static int write_dir(struct image_tree *t, struct image_node *d)
{
	uint32_t entries = 0, below = 0, xattr = d->xattr;
	uint32_t parent = d == image_at(t, 0) ? t->super.inode_count + 1
					      : image_at(t, d->parent)->number;
	sqfs_inode_generic_t *i;
	int r = list(t, d, &entries, &below);

	if (r < 0)
		return r;
	/* It makes an index when there are attributes. */
	i = sqfs_dir_writer_create_inode(
		t->dir, 0,
		entries >= INDEX_LEAST && xattr == IMAGE_NONE ? 0 : xattr,
		parent);
	if (!i)
		return no_memory(t->err);
	base_of(d, i);
	if (i->base.type == SQFS_INODE_DIR) {
		i->data.dir.nlink = 2 + below;
	} else {
		i->data.dir_ext.nlink = 2 + below;
		i->data.dir_ext.xattr_idx = xattr;
	}
	shorten_index(i);
	r = write_inode(t, d, i);
	sqfs_free(i);
	return r;
}

static int write_node(struct image_tree *t, struct image_node *n)
{
	if (n->written)
		return 0;
	switch (n->mode & S_IFMT) {
	case S_IFDIR:
		return write_dir(t, n);
	case S_IFREG:
		return write_file(t, n);
	case S_IFLNK:
		return write_link(t, n);
	default:
		return write_special(t, n);
	}
}

int image_inodes_write(struct image_tree *t)
{
	int r = 0;

	for (size_t d = 0; d < t->dirs.n && r == 0; d++) {
		r = stopped(t);
		for (uint32_t i = image_at(t, t->dirs.at[d])->child;
		     i && r == 0; i = image_at(t, i)->next)
			r = write_node(t, image_at(t, image_at(t, i)->same));
	}
	return r < 0 ? r : write_dir(t, image_at(t, 0));
}
