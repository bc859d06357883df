/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the directory of a group: its attributes and, in the root, merged.h5. */

#include "formats/hdf5/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/group_files.h"
#include "formats/hdf5/merged.h"
#include "formats/hdf5/worker/call.h"

struct group_files {
	struct files files;
	struct hdf5_source *s;
	const char *object;
	int64_t mtime;
	uint32_t file;
	struct hdf5_merged *merged; /* merged.h5 of the root, else NULL */
};
enum { NODE_MERGED = 1 };

static struct group_files *hdf5_group_of(const struct files *f)
{
	return (struct group_files *)(uintptr_t)f;
}

static bool is_merged(const struct files *f, uint64_t node)
{
	return node == NODE_MERGED && hdf5_group_of(f)->merged;
}

static uint64_t hdf5_group_count(const struct files *f, uint64_t dir)
{
	const struct group_files *g = hdf5_group_of(f);

	return !dir && g->merged && view_is_listed(&g->s->views, "h5");
}

static uint64_t hdf5_group_child(const struct files *f, uint64_t dir,
				 uint64_t i, uint32_t *type)
{
	(void)f, (void)dir, (void)i;
	*type = S_IFREG;
	return NODE_MERGED;
}

static int hdf5_group_name(const struct files *f, uint64_t dir, uint64_t i,
			   char *buf, size_t n)
{
	if (i >= hdf5_group_count(f, dir))
		return -ENOENT;
	snprintf(buf, n, "%s", HDF5_MERGED_NAME);
	return 0;
}

static int hdf5_group_name_of(const struct files *f, uint64_t node, char *buf,
			      size_t n)
{
	if (!is_merged(f, node))
		return -ENOENT;
	snprintf(buf, n, "%s", HDF5_MERGED_NAME);
	return 0;
}

static int hdf5_group_find(const struct files *f, uint64_t dir,
			   const char *name, uint64_t *node)
{
	*node = NODE_MERGED;
	return !dir && is_merged(f, *node) && !strcmp(name, HDF5_MERGED_NAME)
		       ? 0
		       : -ENOENT;
}

static int hdf5_group_parent(const struct files *f, uint64_t node,
			     uint64_t *dir)
{
	*dir = 0;
	return is_merged(f, node) ? 0 : -ENOENT;
}

static bool hdf5_group_attr_is_slow(const struct files *f, uint64_t node)
{
	return is_merged(f, node);
}

static int hdf5_group_attr(struct files *f, uint64_t node, struct pinner *p,
			   struct attr *out, struct error *err)
{
	const struct group_files *g = hdf5_group_of(f);

	if (is_merged(f, node))
		return hdf5_merged_attr(g->merged, p, out, err);
	if (node)
		return error_set(err, -ENOENT, "no such file");
	*out = (struct attr){
		.mtime = g->mtime, .mode = S_IFDIR | 0555, .nlink = 2};
	return 0;
}

static int hdf5_group_prepare(struct files *f, uint64_t node, uint64_t off,
			      uint64_t len, struct error *err)
{
	return is_merged(f, node)
		       ? hdf5_merged_prepare(hdf5_group_of(f)->merged, off, len,
					     err)
		       : 0;
}

static int hdf5_group_map(const struct files *f, uint64_t node, uint64_t off,
			  struct plan *p, struct error *err)
{
	return is_merged(f, node)
		       ? hdf5_merged_map(hdf5_group_of(f)->merged, off, p, err)
		       : error_set(err, -EISDIR, "a group has no bytes");
}

ssize_t hdf5_group_attributes(const struct hdf5_place *at, char *buf, size_t n)
{
	struct error err = {.code = 0};
	char *text = hdf5_call_attributes(at, &err);

	return group_attributes_value(text, &err, buf, n);
}

static ssize_t hdf5_group_xattr(struct files *f, uint64_t node, const char *key,
				struct pinner *p, char *buf, size_t n)
{
	const struct group_files *g = (const struct group_files *)f;
	const struct hdf5_place at = {g->s, g->file, g->object};

	if (is_merged(f, node) && !strcmp(key, "left_out"))
		return hdf5_merged_left_out(g->merged, p, buf, n);
	if (node || strcmp(key, "attrs"))
		return -ENODATA;
	return hdf5_group_attributes(&at, buf, n);
}

static const char *hdf5_group_xattr_keys(const struct files *f, uint64_t node,
					 size_t *len)
{
	static const char keys[] = "attrs", merged[] = "left_out";

	if (is_merged(f, node)) {
		*len = sizeof merged;
		return merged;
	}
	*len = node ? 0 : sizeof keys;
	return keys;
}

static char *hdf5_group_about(struct files *f, uint64_t node, struct error *err)
{
	const struct group_files *g = hdf5_group_of(f);
	const struct hdf5_place at = {g->s, g->file, g->object};

	return node ? strdup("{}") : hdf5_call_about(&at, err);
}

static void hdf5_group_free(struct files *f)
{
	hdf5_merged_free(hdf5_group_of(f)->merged);
	free(f);
}

static const struct files_ops group_ops = {
	.count = hdf5_group_count,
	.child = hdf5_group_child,
	.name = hdf5_group_name,
	.name_of = hdf5_group_name_of,
	.find = hdf5_group_find,
	.parent = hdf5_group_parent,
	.attr_is_slow = hdf5_group_attr_is_slow,
	.attr = hdf5_group_attr,
	.prepare = hdf5_group_prepare,
	.map = hdf5_group_map,
	.xattr = hdf5_group_xattr,
	.xattr_keys = hdf5_group_xattr_keys,
	.about = hdf5_group_about,
	.free = hdf5_group_free,
};

struct files *hdf5_group_files_new(struct hdf5_source *s, uint32_t file,
				   const char *object, int64_t mtime,
				   bool merged)
{
	struct group_files *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	*g = (struct group_files){.files = {&group_ops},
				  .s = s,
				  .object = object,
				  .mtime = mtime,
				  .file = file};
	if (merged && !(g->merged = hdf5_merged_new(s))) {
		free(g);
		return NULL;
	}
	return &g->files;
}
