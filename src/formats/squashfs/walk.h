/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files that walk an image; they all run in the child
 * process. */
#ifndef FORMATS_SQUASHFS_WALK_H
#define FORMATS_SQUASHFS_WALK_H

#include <squashfuse.h>

#include "base/vec.h"
#include "formats/squashfs/private.h"

/* A map from numbers to numbers, with open addressing.  All zeros is an empty map. */
struct squashfs_map {
	uint64_t *at; /* pairs of a key plus 1 and a value */
	size_t n, room;
};
/* Return a pointer to the value of `key`, valid until the next squashfs_map_set, or
 * NULL. */
uint64_t *squashfs_map_find(const struct squashfs_map *m, uint64_t key);
/* Set the value of `key`, or replace it.  Return false if there is no memory. */
bool squashfs_map_set(struct squashfs_map *m, uint64_t key, uint64_t value);

/* A list of blocks, and the fragment that ends it.  Files with the same content
 * share one. */
struct squashfs_run {
	/* Position in the image and size of the file, in bytes. */
	uint64_t start, size;
	uint32_t fragment, offset;
	uint64_t first; /* number of its first entry in the table of blocks */
};

struct squashfs_walk {
	sqfs fs;
	const struct squashfs_info *info;
	struct members_builder *b;
	squashfs_beat *beat;
	void *ctx;
	struct error *err;
	/* Bytes that lists of blocks, and lists of directory entries, may still
	 * take. */
	uint64_t lists_left, dirs_left;
	/* Entries added so far; progress at the last beat. */
	uint64_t blocks, beaten;

	/* From the position of an inode to what members_add returned for it, or
	 * WALK_DIR. */
	struct squashfs_map seen;
	struct squashfs_map shared; /* from run_hash to a number in `runs` */
	vec(struct squashfs_run) runs;
	uint64_t fragments; /* entry of the first fragment block */

	/* The extended attributes of set `xattrs_of`, which is the last one that
	 * was read. */
	uint32_t xattrs_of;
	vec(struct member_xattr) xattrs;
	vec(size_t) places; /* offsets of names and values in `bytes` */
	char *bytes;
	size_t bytes_used, bytes_room;

	vec(struct member_block) list; /* part of a file's list of blocks */
	/* Path of the current entry: "/a/b", or "" for the root. */
	char path[16384 + 65536 + 2];
	char target[65536 + 1]; /* target of the current symlink */
};
/* The path as members_add takes it, without the leading slash.  The root is "". */
static inline const char *squashfs_walk_path(const struct squashfs_walk *w)
{
	return w->path[0] == '/' ? w->path + 1 : w->path;
}
#define WALK_DIR UINT64_MAX
#define WALK_BAD UINT64_MAX

/* A libsquashfuse call failed; the caller had set errno to 0 before it.  Return 0
 * if the image is at fault, or set w->err and return -ENOMEM or -EIO if errno says
 * so. */
int squashfs_walk_failed(struct squashfs_walk *w);
/* Return true if a cursor points into a block of metadata.  Blocks may be shorter
 * than positions in them claim, and libsquashfuse does not check that. */
bool squashfs_walk_cursor(struct squashfs_walk *w, const sqfs_md_cursor *cur);
/* Copy entry i of a table of `count` entries to `out`.  Return SQFS_ERR also if the
 * table does not reach that far. */
sqfs_err squashfs_walk_table(struct squashfs_walk *w, const sqfs_table *table,
			     uint64_t count, uint64_t i, void *out);
/* Report progress to the parent process if enough was added since the last report. */
void squashfs_walk_beat(struct squashfs_walk *w);

/* Add an entry for each fragment block, in the order of the image, so that reading
 * small files in their order reads the image forwards.  Return 0, -ENOMEM or -EIO. */
int squashfs_walk_fragments(struct squashfs_walk *w);
/* Set kind, data and size of regular file `inode` in *m.  Return 0, -EINVAL (noted)
 * if there can be no such file, -ENOMEM or -EIO. */
int squashfs_walk_file(struct squashfs_walk *w, sqfs_inode *inode,
		       struct member *m);
/* Set the extended attributes of `inode` in *m; they are valid until the next call.
 * Damaged ones are noted and left out.  Return 0, -ENOMEM or -EIO. */
int squashfs_walk_xattrs(struct squashfs_walk *w, const sqfs_inode *inode,
			 struct member *m);

#endif
