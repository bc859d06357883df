/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of an image, and its superblock. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "pack/squashfs/private.h"

/* Where the inode of each number is: for NFS. */
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

/* libsquashfs 1.2 writes behind its memory when the number of sets is a multiple of
 * what fits into a block of metadata: one more, which nobody has. */
static int fill_xattrs(struct image *im)
{
	uint32_t set = im->n_xattrs;
	int r = 0;

	if (!im->n_xattrs ||
	    im->n_xattrs % (SQFS_META_BLOCK_SIZE / sizeof(sqfs_xattr_id_t)))
		return 0;
	/* Until it is one that nobody has. */
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

int image_tables_write(struct image_tree *t)
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

int image_super_write(struct image_tree *t)
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
