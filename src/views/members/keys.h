/* SPDX-License-Identifier: BSD-2-Clause */
/* An index of members by sample, as WebDataset groups them. */
#ifndef VIEWS_MEMBERS_KEYS_H
#define VIEWS_MEMBERS_KEYS_H

#include "views/members/member_views.h"

/*
 * A path is a sample's key and an extension, ^((?:.*\/|)[^.]+)[.]([^/]*)$: the key ends
 * at the first dot of the base name, and the directories belong to it.  Extensions are
 * lower case (ASCII).  Files belong to no sample if they have no extension, or one that
 * cannot be a file name, or if they are below a top directory __NAME__.
 *
 * A key is a path of directories, and KEY/EXT a file.  So there are two kinds of
 * directories: those of the archive that have samples below them (records), and groups,
 * the files of one key, which are neighbours in `entry`, in order of extensions.  If a
 * key has the name of such a directory (a.jpg beside a/b.jpg; or a/.jpg, whose key is
 * "a/"), its files are in that directory: `moved`.
 */
struct keys_group {
	uint32_t first, n; /* a range of `entry` */
};
struct keys_moved {
	uint32_t dir; /* a record */
	struct keys_group group;
};
struct keys {
	const struct member_views *b;
	const struct members *m;
	uint32_t *entry;          /* records */
	struct keys_group *group; /* in order of records */
	struct keys_moved *moved; /* in order of `dir`, one for each */
	uint32_t *dir; /* records, ascending; the root is not among them */
	uint64_t n_entries, n_groups, n_moved, n_dirs;
};
/* Make the index.  Samples that cannot be shown as WebDataset reads them are logged.
 * Returns 0 or -ENOMEM. */
int keys_init(struct keys *k, const struct member_views *b, struct error *err);
void keys_free(struct keys *k);

/* A range of `group` or `dir`. */
struct keys_slice {
	uint64_t first, n;
};
/* Return the groups, and the directories, in a directory. */
struct keys_slice keys_groups_in(const struct keys *k, uint64_t dir);
struct keys_slice keys_dirs_in(const struct keys *k, uint64_t dir);
/* Return the files that were moved to a directory; NULL if there are none. */
const struct keys_group *keys_moved_in(const struct keys *k, uint64_t dir);
/* Find the group in `dir` whose key ends in `name`; find the record of a group's file
 * with this extension.  Return 0 or -ENOENT. */
int keys_find_group(const struct keys *k, uint64_t dir, const char *name,
		    uint64_t *group);
int keys_find_entry(const struct keys *k, const struct keys_group *g,
		    const char *extension, uint64_t *record);
bool keys_has_dir(const struct keys *k, uint64_t record);
/* Return the length in bytes of the part of a file's name that belongs to its key; may
 * be 0. */
size_t keys_base(const char *name);
/* Write the extension as it is listed, in lower case.  Returns 0 or -ENAMETOOLONG. */
int keys_extension(const char *name, char *buf, size_t n);

#endif
