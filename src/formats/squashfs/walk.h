/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the walk through an image share; they run in the child. */
#ifndef FORMATS_SQUASHFS_WALK_H
#define FORMATS_SQUASHFS_WALK_H

#include <squashfuse.h>

#include "base/vec.h"
#include "formats/squashfs/private.h"

/* From a number to another one; zeros are an empty map. */
struct squashfs_map {
	uint64_t *at; /* pairs; a key is stored plus 1 */
	size_t n, room;
};
/* NULL: it is not there. */
uint64_t *squashfs_map_find(const struct squashfs_map *m, uint64_t key);
/* Set, or replace; false when memory is out. */
bool squashfs_map_set(struct squashfs_map *m, uint64_t key, uint64_t value);

/* Blocks that files share. */
struct squashfs_run {
	uint64_t start, size; /* of the file */
	uint32_t fragment, offset;
	uint64_t first; /* entry in the table of blocks */
};

struct squashfs_walk {
	sqfs fs;
	const struct squashfs_info *info;
	struct members_builder *b;
	squashfs_beat *beat;
	void *ctx;
	struct error *err;
	/* Bytes that lists of blocks, and of entries, may still have. */
	uint64_t lists_left, dirs_left;
	uint64_t blocks, beaten; /* entries so far; things, at the last beat */

	/* Position of an inode: what members_add gave, or WALK_DIR. */
	struct squashfs_map seen;
	struct squashfs_map shared; /* a hash of a run: number in `runs` */
	vec(struct squashfs_run) runs;
	uint64_t fragments; /* block of the first one */

	/* Extended attributes of the set number `xattrs_of`. */
	uint32_t xattrs_of;
	vec(struct member_xattr) xattrs;
	vec(size_t) places; /* of name and value, in `bytes` */
	char *bytes;
	size_t bytes_used, bytes_room;

	vec(struct member_block) list; /* a piece of a file's */
	char path[16384 + 65536 + 2];  /* of the entry at hand: "/a/b", "" */
	char target[65536 + 1];        /* of a symlink */
};
/* As people write it, and members_add: the root is "". */
static inline const char *squashfs_walk_path(const struct squashfs_walk *w)
{
	return w->path[0] == '/' ? w->path + 1 : w->path;
}
#define WALK_DIR UINT64_MAX
#define WALK_BAD UINT64_MAX

/* A call has failed: 0, it was the image's fault; or -ENOMEM or -EIO with a
 * sentence, going by errno, which was 0 before. */
int squashfs_walk_failed(struct squashfs_walk *w);
/* Is there anything where a cursor points?  Blocks may be shorter than positions
 * in them say, and libsquashfuse does not look. */
bool squashfs_walk_cursor(struct squashfs_walk *w, const sqfs_md_cursor *cur);
/* Entry i of a table of `count`; SQFS_ERR also where that is not there. */
sqfs_err squashfs_walk_table(struct squashfs_walk *w, const sqfs_table *table,
			     uint64_t count, uint64_t i, void *out);
/* Entries so far; tells the parent from time to time. */
void squashfs_walk_beat(struct squashfs_walk *w);

/* An entry for each block of fragments, in the order of the image, so that going
 * through small files is going forward in them.  -ENOMEM, -EIO. */
int squashfs_walk_fragments(struct squashfs_walk *w);
/* Fill in what a regular file's content is.  -EINVAL: no such file can be, which
 * is noted; -ENOMEM, -EIO. */
int squashfs_walk_file(struct squashfs_walk *w, sqfs_inode *inode,
		       struct member *m);
/* The attributes of an inode, valid until the next call.  What is damaged is noted
 * and left out. */
int squashfs_walk_xattrs(struct squashfs_walk *w, const sqfs_inode *inode,
			 struct member *m);

#endif
