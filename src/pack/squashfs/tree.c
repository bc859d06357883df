/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything behind the data of an image: inodes, directories, tables, the superblock. */

/*
 * Entries are sorted by path, so that a directory is followed by its contents.
 * Directories are then processed bottom-up, and the inodes of a directory's entries are
 * written one after the other, in order of names: listing a directory with attributes
 * reads one contiguous range of the inode table.
 *
 *	number   the entries of each directory, in that order; the root gets the last number
 *	write    the entries of each directory; the listing of a subdirectory is written first,
 *	         when everything below it has been written
 */
#include <endian.h>
#include <errno.h>
#include <sqfs/dir.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pack/squashfs/private.h"

/* Directories of at least this many entries get an index, as in mksquashfs. */
#define INDEX_LEAST 256
/* Sizes of blocks that are written at a time. */
#define SIZES 2048

struct image_tree {
	struct image *im;
	struct error *err;
	uint32_t *order;    /* all nodes but the top */
	vec(uint32_t) dirs; /* directories, bottom-up */
	sqfs_meta_writer_t *inodes, *listings;
	sqfs_dir_writer_t *dir;
	sqfs_super_t super;
};
static inline struct image_node *image_at(const struct image_tree *t,
					  uint32_t i)
{
	return &t->im->nodes.at[i];
}

const char *image_path(const struct image *im, const struct image_node *n)
{
	return n->entry == UINT64_MAX ? "" : scan_path(im->a.scan, n->entry);
}

static const char *image_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- sorting ---------------------------------------------------------------- */

static int path_rank_byte(unsigned char c)
{
	return c == '\0' ? -1 : c == '/' ? 0 : c;
}

/* Compare bytewise, with '/' before all other bytes, so that a directory is followed by
 * its contents. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return path_rank_byte((unsigned char)*a) -
	       path_rank_byte((unsigned char)*b);
}

static int compare_nodes(const void *a, const void *b, void *ctx)
{
	const struct image_tree *t = ctx;

	return compare_paths(
		image_path(t->im, image_at(t, *(const uint32_t *)a)),
		image_path(t->im, image_at(t, *(const uint32_t *)b)));
}

static int tree_sort(struct image_tree *t)
{
	size_t n = t->im->nodes.n - 1;
	bool sorted = true;

	t->order = malloc((n + 1) * sizeof *t->order);
	if (!t->order)
		return error_no_memory(t->err, "the tree of directories");
	for (size_t i = 0; i < n; i++) {
		t->order[i] = (uint32_t)(i + 1);
		sorted = sorted && (!i || compare_nodes(&t->order[i - 1],
							&t->order[i], t) < 0);
	}
	if (!sorted)
		qsort_r(t->order, n, sizeof *t->order, compare_nodes, t);
	return 0;
}

/* Is the entry `path` below the directory `dir`? */
static bool tree_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (!strncmp(path, dir, n) && path[n] == '/');
}

/* Link node `i` to its directory.  *open is the innermost open directory; those that `i`
 * is not below are complete. */
static int tree_place(struct image_tree *t, uint32_t i, uint32_t *open,
		      uint32_t *tail)
{
	struct image_node *n = image_at(t, i);
	const char *path = image_path(t->im, n);

	while (!tree_is_below(path, image_path(t->im, image_at(t, *open)))) {
		if (!vec_push(&t->dirs, *open))
			return error_no_memory(t->err,
					       "the tree of directories");
		*open = image_at(t, *open)->parent;
	}
	if (image_base_name(path) > path &&
	    strlen(image_path(t->im, image_at(t, *open))) !=
		    (size_t)(image_base_name(path) - path) - 1)
		return error_set(t->err, -EINVAL,
				 "'%s' came without its directory: a defect",
				 path);
	n->parent = *open;
	if (tail[*open])
		image_at(t, tail[*open])->next = i;
	else
		image_at(t, *open)->child = i;
	tail[*open] = i;
	if (S_ISDIR(n->mode))
		*open = i;
	return 0;
}

/* Set parents, children and siblings (0 means none, because the top is no one's sibling),
 * and list directories bottom-up. */
static int tree_connect(struct image_tree *t)
{
	size_t n = t->im->nodes.n;
	uint32_t *tail = calloc(n, sizeof *tail);
	uint32_t open = 0;
	int r = tail ? 0 : error_no_memory(t->err, "the tree of directories");

	for (size_t i = 0; r == 0 && i < n - 1; i++)
		r = tree_place(t, t->order[i], &open, tail);
	free(tail);
	while (r == 0 && open) {
		if (!vec_push(&t->dirs, open))
			r = error_no_memory(t->err, "the tree of directories");
		open = image_at(t, open)->parent;
	}
	if (r == 0 && !vec_push(&t->dirs, 0))
		r = error_no_memory(t->err, "the tree of directories");
	return r;
}

static void tree_number(struct image_tree *t)
{
	uint32_t last = 0;

	for (size_t d = 0; d < t->dirs.n; d++)
		for (uint32_t i = image_at(t, t->dirs.at[d])->child; i;
		     i = image_at(t, i)->next) {
			struct image_node *n =
				image_at(t, image_at(t, i)->same);

			if (!n->number)
				n->number = ++last;
		}
	image_at(t, 0)->number = ++last;
	t->super.inode_count = last;
}

static int tree_check_stop(const struct image_tree *t)
{
	const _Atomic int *stop = t->im->a.stop;

	return stop && *stop ? error_set(t->err, -EINTR, "interrupted") : 0;
}

/* ---- inodes ------------------------------------------------------------------ */

static void inode_set_base(const struct image_node *n, sqfs_inode_generic_t *i)
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
				 "there are too many files for squashfs");
	n->ref = block << 16 | offset;
	n->written = true;
	r = sqfs_meta_writer_write_inode(t->inodes, i);
	return r ? image_failed(t->im, r, "the table of inodes", t->err) : 0;
}

/* Bytes of a file that are not stored. */
static uint64_t sparse_bytes(const struct image *im, const struct image_node *n)
{
	uint64_t blocks = image_n_blocks(im, n), sum = 0;
	struct image_walk walk = {.at = n->blocks};

	for (uint64_t i = 0; i < blocks; i++)
		if (!image_next(im, &walk))
			sum += i + 1 < blocks ? im->block
					      : n->size - i * im->block;
	/* As in mksquashfs, a file that is not empty takes at least one byte. */
	return sum && sum == n->size ? sum - 1 : sum;
}

/* Write the sizes of blocks here, because libsquashfs would put them all on the stack. */
static int write_sizes(struct image_tree *t, const struct image_node *n)
{
	uint64_t left = image_n_blocks(t->im, n);
	struct image_walk walk = {.at = n->blocks};
	uint32_t some[SIZES];
	int r = 0;

	while (left && r == 0) {
		unsigned k = 0;

		if (tree_check_stop(t) < 0)
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

	inode_set_base(n, &i);
	i.data.file_ext.blocks_start = n->place;
	i.data.file_ext.file_size = n->size;
	i.data.file_ext.sparse = sparse_bytes(t->im, n);
	i.data.file_ext.nlink = n->links;
	i.data.file_ext.fragment_idx = n->fragment;
	i.data.file_ext.fragment_offset =
		n->fragment == IMAGE_NONE ? 0 : n->offset;
	i.data.file_ext.xattr_idx = n->xattr;
	sqfs_inode_make_basic(&i); /* where that is possible */
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
		return error_no_memory(t->err, "the tree of directories");
	i->base.type = SQFS_INODE_SLINK;
	inode_set_base(n, i);
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

	inode_set_base(n, &i);
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

/* ---- directories ------------------------------------------------------------- */

static int tree_write_listing(struct image_tree *t, const struct image_node *d,
			      uint32_t *entries, uint32_t *below)
{
	int r = sqfs_dir_writer_begin(t->dir, 0);

	for (uint32_t i = d->child; i && r == 0; i = image_at(t, i)->next) {
		const struct image_node *n = image_at(t, image_at(t, i)->same);

		r = sqfs_dir_writer_add_entry(
			t->dir,
			image_base_name(image_path(t->im, image_at(t, i))),
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
				   "'%s' has too many names for squashfs",
				   image_path(t->im, d))
		       : 0;
}

/* Libsquashfs counts entries of the index in 16 bits.  Drop those beyond: the first ones
 * are a valid index, too. */
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
	int r = tree_write_listing(t, d, &entries, &below);

	if (r < 0)
		return r;
	/* It makes an index only if there are extended attributes, or this argument
	 * pretends so. */
	i = sqfs_dir_writer_create_inode(
		t->dir, 0,
		entries >= INDEX_LEAST && xattr == IMAGE_NONE ? 0 : xattr,
		parent);
	if (!i)
		return error_no_memory(t->err, "the tree of directories");
	inode_set_base(d, i);
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

static int image_inodes_write(struct image_tree *t)
{
	int r = 0;

	for (size_t d = 0; d < t->dirs.n && r == 0; d++) {
		r = tree_check_stop(t);
		for (uint32_t i = image_at(t, t->dirs.at[d])->child;
		     i && r == 0; i = image_at(t, i)->next)
			r = write_node(t, image_at(t, image_at(t, i)->same));
	}
	return r < 0 ? r : write_dir(t, image_at(t, 0));
}

/* ---- tables -------------------------------------------------------------- */

/* Write the export table, which NFS needs: the inode of each number. */
static int write_export(struct image_tree *t)
{
	uint64_t *refs = calloc(t->super.inode_count, sizeof *refs);
	sqfs_u64 start = 0;
	int r;

	if (!refs)
		return SQFS_ERROR_ALLOC;
	for (size_t i = 0; i < t->im->nodes.n; i++) {
		const struct image_node *n = image_at(t, (uint32_t)i);

		if (n->number)
			refs[n->number - 1] = htole64(n->ref);
	}
	r = sqfs_write_table(&t->im->file.base, &t->im->codec.meta.base, refs,
			     t->super.inode_count * sizeof *refs, &start);
	free(refs);
	t->super.export_table_start = start;
	t->super.flags |= SQFS_FLAG_EXPORTABLE;
	return r;
}

/* Libsquashfs 1.2 writes beyond its memory if the number of sets of extended attributes
 * is a multiple of what fits into a metadata block.  Add one more set, which no entry
 * uses. */
static int fill_xattrs(struct image *im)
{
	uint32_t set = im->n_xattrs;
	int r = 0;

	if (!im->n_xattrs ||
	    im->n_xattrs % (SQFS_META_BLOCK_SIZE / sizeof(sqfs_xattr_id_t)))
		return 0;
	/* Repeat until it is a set that does not exist yet. */
	for (uint32_t n = 0; r == 0 && (n == 0 || set < im->n_xattrs); n++) {
		r = sqfs_xattr_writer_begin(im->xattrs, 0);
		if (r == 0)
			r = sqfs_xattr_writer_add(im->xattrs, "user.nobody", &n,
						  sizeof n);
		if (r == 0)
			r = sqfs_xattr_writer_end(im->xattrs, &set);
	}
	return r;
}

static int image_tables_write(struct image_tree *t)
{
	struct image *im = t->im;
	sqfs_file_t *f = &im->file.base;
	sqfs_compressor_t *c = &im->codec.meta.base;
	int r = sqfs_frag_table_write(im->fragments, f, &t->super, c);

	t->super.flags &= (sqfs_u16)~SQFS_FLAG_ALWAYS_FRAGMENTS;
	if (r == 0)
		r = write_export(t);
	if (r == 0)
		r = sqfs_id_table_write(im->ids, f, &t->super, c);
	if (r == 0)
		r = fill_xattrs(im);
	if (r == 0)
		r = sqfs_xattr_writer_flush(im->xattrs, f, &t->super, c);
	return r ? image_failed(im, r, "a table", t->err) : 0;
}

static int image_super_write(struct image_tree *t)
{
	static const char zeros[SQFS_DEVBLK_SIZE];
	struct image *im = t->im;
	size_t over;
	int r;

	if (im->codec.none)
		t->super.flags |= SQFS_FLAG_UNCOMPRESSED_INODES |
				  SQFS_FLAG_UNCOMPRESSED_DATA |
				  SQFS_FLAG_UNCOMPRESSED_XATTRS |
				  SQFS_FLAG_UNCOMPRESSED_IDS;
	if (im->options)
		t->super.flags |= SQFS_FLAG_COMPRESSOR_OPTIONS;
	t->super.bytes_used = out_size(im->file.out);
	over = t->super.bytes_used % SQFS_DEVBLK_SIZE;
	r = over ? image_append(im, zeros, SQFS_DEVBLK_SIZE - over, t->err) : 0;
	if (r < 0)
		return r;
	r = sqfs_super_write(&t->super, &im->file.base);
	return r ? image_failed(im, r, "the superblock", t->err) : 0;
}

/* ---- writing ----------------------------------------------------------------- */

static int write_inodes(struct image_tree *t)
{
	sqfs_file_t *f = &t->im->file.base;
	int r;

	t->super.inode_table_start = f->get_size(f);
	r = image_inodes_write(t);
	if (r < 0)
		return r;
	t->super.root_inode_ref = image_at(t, 0)->ref;
	r = sqfs_meta_writer_flush(t->inodes);
	if (r == 0)
		r = sqfs_meta_writer_flush(t->listings);
	t->super.directory_table_start = f->get_size(f);
	if (r == 0)
		r = sqfs_meta_write_write_to_file(t->listings);
	return r ? image_failed(t->im, r, "the directories", t->err) : 0;
}

static int make_writers(struct image_tree *t)
{
	struct image *im = t->im;
	int r = sqfs_super_init(&t->super, im->block, im->newest,
				(SQFS_COMPRESSOR)im->codec.config.id);

	if (r)
		return image_failed(im, r, "a superblock", t->err);
	t->inodes = sqfs_meta_writer_create(&im->file.base,
					    &im->codec.meta.base, 0);
	t->listings =
		sqfs_meta_writer_create(&im->file.base, &im->codec.meta.base,
					SQFS_META_WRITER_KEEP_IN_MEMORY);
	t->dir = t->listings ? sqfs_dir_writer_create(t->listings, 0) : NULL;
	return t->inodes && t->dir
		       ? 0
		       : error_no_memory(t->err, "the tree of directories");
}

int image_tree_write(struct image *im, struct error *err)
{
	struct image_tree t = {.im = im, .err = err};
	int r = make_writers(&t);

	if (r == 0)
		r = tree_sort(&t);
	if (r == 0)
		r = tree_connect(&t);
	if (r == 0) {
		tree_number(&t);
		r = write_inodes(&t);
	}
	if (r == 0)
		r = image_tables_write(&t);
	if (r == 0)
		r = image_super_write(&t);
	free(t.order);
	vec_free(&t.dirs);
	if (t.dir)
		sqfs_destroy(t.dir);
	if (t.listings)
		sqfs_destroy(t.listings);
	if (t.inodes)
		sqfs_destroy(t.inodes);
	return r;
}
