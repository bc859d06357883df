/* SPDX-License-Identifier: BSD-2-Clause */
/* The units in which a pack is fed to its writer: entries with attributes, and their
 * bytes. */
#ifndef SHARDS_UNIT_H
#define SHARDS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed_extent {
	/* A range of data, in bytes; a hole is between two of them. */
	uint64_t at, len;
};
struct feed_xattr {
	const char *name; /* with its prefix: "user.x" */
	const void *value;
	size_t len;
};
/* The attributes that an entry gets in the pack. */
struct feed_attr {
	uint32_t mode; /* type and permissions */
	uint32_t uid, gid;
	uint64_t rdev;
	uint64_t size; /* of a regular file, in bytes; else 0 */
	int64_t mtime; /* seconds since 1970 */
	uint32_t mtime_ns;
};
/*
 * The next bytes of an entry.  An entry has one unit, or several if it is a regular
 * file of more than FEED_WHOLE bytes.  Entries come in order, and so do the bytes of
 * one entry, without gaps and to the end: a unit covers [at, at + size), and the last
 * one ends at attr.size.  The size of a unit is 0 for hard links, and for all entries
 * if no data is wanted.  Holes are not read: `data` is NULL if a unit lies wholly in a
 * hole.
 */
struct feed_unit {
	uint64_t entry; /* its number in the scan */
	const char *path;
	struct feed_attr attr; /* the same in all units of an entry */
	bool first, last;
	uint64_t at, size;
	/* `size` bytes, with zeros in holes; NULL: all are zeros. */
	const void *data;
	bool lost; /* some bytes could not be read and are zeros */
	/* The fields below are set in the first unit: */
	const char *link; /* target of a symlink, or NULL */
	/* For a hard link, the path of an earlier entry that has the bytes; else NULL. */
	const char *same_as;
	bool sparse; /* `extents` has the ranges of data */
	const struct feed_extent *extents;
	size_t n_extents;
	const struct feed_xattr *xattrs; /* sorted by name */
	size_t n_xattrs;
};

#endif
