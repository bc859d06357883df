/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a pack, piece by piece: entries with their attributes, and their bytes. */
#ifndef SHARDS_UNIT_H
#define SHARDS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed_extent {
	uint64_t at, len; /* data; what is between two is a hole */
};
struct feed_xattr {
	const char *name; /* "user.x" */
	const void *value;
	size_t len;
};
/* Attributes as they shall be in the pack. */
struct feed_attr {
	uint32_t mode; /* with type */
	uint32_t uid, gid;
	uint64_t rdev;
	uint64_t size; /* of a regular file; else 0 */
	int64_t mtime; /* seconds since 1970 */
	uint32_t mtime_ns;
};
/*
 * The next bytes of an entry.  Every entry comes once or (regular files of more than
 * FEED_WHOLE) several times, entries in order, bytes of one in order, without gaps and
 * to the end: a unit covers [at, at + size), and the last one ends at attr.size (but hard
 * links, and everything when no data is wanted: size is 0).  What
 * is in holes is not read: data is NULL where all of a unit is in one.
 */
struct feed_unit {
	uint64_t entry; /* of the scan */
	const char *path;
	struct feed_attr attr; /* the same in all units of an entry */
	bool first, last;
	uint64_t at, size;
	const void *data; /* `size` bytes, zeros in holes; NULL: zeros */
	bool lost;        /* some of them could not be read, and are zeros */
	/* With the first unit: */
	const char *link;    /* target of a symlink; NULL */
	const char *same_as; /* a hard link: path of the entry that has the
				   bytes, which came before; NULL */
	bool sparse;         /* `extents` says where data is */
	const struct feed_extent *extents;
	size_t n_extents;
	const struct feed_xattr *xattrs; /* sorted by name */
	size_t n_xattrs;
};

#endif
