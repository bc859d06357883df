/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands behind the data of an image: inodes, directories, tables. */

/*
 * Entries are sorted by path, so that a directory is followed by all that is in it.
 * Then directories are gone through from below, and the inodes of everything in one are
 * written one behind the other, in order of names: listing a directory with attributes
 * reads one stretch of the inode table.
 *
 *	number   each directory's entries, in that order; the root has the last number
 *	write    each directory's entries: of one that is a directory its listing first,
 *	         for which all below it has to be written, as it is
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pack/squashfs/private.h"

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

const char *image_path(const struct image *im, const struct image_node *n)
{
	return n->entry == UINT64_MAX ? "" : scan_path(im->a.scan, n->entry);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- sorting ---------------------------------------------------------------- */

static int rank(unsigned char c)
{
	return c == '\0' ? -1 : c == '/' ? 0 : c;
}

/* As bytes, but a '/' before any other: what is below a directory follows it. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return rank((unsigned char)*a) - rank((unsigned char)*b);
}

static int compare_nodes(const void *a, const void *b, void *ctx)
{
	const struct image_tree *t = ctx;

	return compare_paths(
		image_path(t->im, image_at(t, *(const uint32_t *)a)),
		image_path(t->im, image_at(t, *(const uint32_t *)b)));
}

static int sort(struct image_tree *t)
{
	size_t n = t->im->nodes.n - 1;
	bool sorted = true;

	t->order = malloc((n + 1) * sizeof *t->order);
	if (!t->order)
		return no_memory(t->err);
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
static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (!strncmp(path, dir, n) && path[n] == '/');
}

/* An entry goes to the directory that it is below; those it is not below are whole. */
static int place(struct image_tree *t, uint32_t i, uint32_t *open,
		 uint32_t *tail)
{
	struct image_node *n = image_at(t, i);
	const char *path = image_path(t->im, n);

	while (!is_below(path, image_path(t->im, image_at(t, *open)))) {
		if (!vec_push(&t->dirs, *open))
			return no_memory(t->err);
		*open = image_at(t, *open)->parent;
	}
	if (base_name(path) > path &&
	    strlen(image_path(t->im, image_at(t, *open))) !=
		    (size_t)(base_name(path) - path) - 1)
		return error_set(t->err, -EINVAL,
				 "'%s' came without its directory", path);
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

/* Parents, children and brothers (0: none; it is nobody's), and directories from below. */
static int connect(struct image_tree *t)
{
	size_t n = t->im->nodes.n;
	uint32_t *tail = calloc(n, sizeof *tail);
	uint32_t open = 0;
	int r = tail ? 0 : no_memory(t->err);

	for (size_t i = 0; r == 0 && i < n - 1; i++)
		r = place(t, t->order[i], &open, tail);
	free(tail);
	while (r == 0 && open) {
		if (!vec_push(&t->dirs, open))
			r = no_memory(t->err);
		open = image_at(t, open)->parent;
	}
	if (r == 0 && !vec_push(&t->dirs, 0))
		r = no_memory(t->err);
	return r;
}

static void number(struct image_tree *t)
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

/* ---- writing ------------------------------------------------------------------ */

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
	return t->inodes && t->dir ? 0 : no_memory(t->err);
}

int image_tree_write(struct image *im, struct error *err)
{
	struct image_tree t = {.im = im, .err = err};
	int r = make_writers(&t);

	if (r == 0)
		r = sort(&t);
	if (r == 0)
		r = connect(&t);
	if (r == 0) {
		number(&t);
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
