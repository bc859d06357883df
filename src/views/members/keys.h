/* SPDX-License-Identifier: BSD-2-Clause */
/* Members by sample, as WebDataset groups them: an index. */
#ifndef VIEWS_MEMBERS_KEYS_H
#define VIEWS_MEMBERS_KEYS_H

#include "views/members/beside.h"

/*
 * A path is a sample's key and an extension, ^((?:.*\/|)[^.]+)[.]([^/]*)$: the key ends at
 * the first dot of the base name, and the directories belong to it.  Extensions are lower
 * case (ASCII).  Files without an extension, or with one that no file can be called, belong
 * to no sample, nor does what is below a top directory __NAME__.
 *
 * A key is a path of directories, KEY/EXT a file.  So directories are those of the archive
 * that have samples below them (records), and groups: files of one key, side by side in
 * `entry`, in order of extensions.  Where a key is called as such a directory (a.jpg beside
 * a/b.jpg; or a/.jpg, whose key is "a/"), its files are in that directory: `moved`.
 */
struct keys_group {
	uint32_t first, n; /* in entry */
};
struct keys_moved {
	uint32_t dir; /* record */
	struct keys_group group;
};
struct keys {
	const struct beside *b;
	const struct members *m;
	uint32_t *entry;          /* records */
	struct keys_group *group; /* in order of records */
	struct keys_moved *moved; /* in order of dir, one for each */
	uint32_t *dir; /* records, ascending; the root is not among them */
	uint64_t n_entries, n_groups, n_moved, n_dirs;
};
/* -ENOMEM.  What is odd is said in the log. */
int keys_init(struct keys *k, const struct beside *b, struct error *err);
void keys_free(struct keys *k);

/* A slice of group or dir. */
struct keys_slice {
	uint64_t first, n;
};
/* Groups, and directories, in a directory. */
struct keys_slice keys_groups_in(const struct keys *k, uint64_t dir);
struct keys_slice keys_dirs_in(const struct keys *k, uint64_t dir);
/* Files that are in it beside these; NULL: none. */
const struct keys_group *keys_moved_in(const struct keys *k, uint64_t dir);
/* The group in `dir` whose key ends so; the entry of a group with this extension.  -ENOENT. */
int keys_find_group(const struct keys *k, uint64_t dir, const char *name,
		    uint64_t *group);
int keys_find_entry(const struct keys *k, const struct keys_group *g,
		    const char *extension, uint64_t *record);
bool keys_has_dir(const struct keys *k, uint64_t record);
/* Bytes of a file's name that are the end of its key; 0: none. */
size_t keys_base(const char *name);
/* The extension as it is listed; 0 or -ENAMETOOLONG. */
int keys_extension(const char *name, char *buf, size_t n);

#endif
