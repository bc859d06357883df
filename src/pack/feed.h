/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files of a scan, read ahead by many threads, given out in order. */
#ifndef PACK_FEED_H
#define PACK_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/scan.h"

/* Small files come whole, larger ones in pieces of so many bytes. */
#define FEED_WHOLE (UINT64_C(1) << 20)
#define FEED_PIECE (UINT64_C(4) << 20)

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
/* Of the namespaces user, trusted and security, but what is a fact of a file system or a
 * machine: security.selinux, trusted.lov and the like, and what our mounts say
 * (user.tensorfs.*). */
struct feed_options {
	unsigned jobs; /* threads that read: >= 1 */
	uint64_t
		memory; /* bytes that may wait to be taken; one unit always may */
	bool xattrs;    /* read them */
	bool data;      /* read what is in files; else units have no data and
			    come once for each entry */
	/* Attributes that all get: UINT32_MAX, INT64_MIN: their own. */
	uint32_t uid, gid;
	int64_t mtime;
	int64_t mtime_most; /* SOURCE_DATE_EPOCH: later ones become this; INT64_MAX:
			       none */
};
/*
 * Small files: attributes are those of the file that was opened; one that is another when
 * it was read is a problem (scan_problem), and given as it was read; one that cannot be
 * opened is a problem and left out (as are the names that are hard links to it).
 * Large files: attributes are those of the scan; what got shorter meanwhile ends in zeros,
 * and is a problem; one in whose place another file is, is left out as if it was gone.
 * What was left out once, another feed of this scan leaves out in silence.
 */
struct feed;
int feed_new(struct feed **out, struct scan *s, const char *top,
	     const struct feed_options *o, const _Atomic int *stop,
	     struct error *err);
/* What the options make of an entry's attributes. */
void feed_attr_set(struct feed_attr *a, const struct scan_entry *e,
		   const struct feed_options *o);
/* 1: *u is the next unit, valid until the next call; 0: that was all; -EINTR: *stop;
 * -ENOMEM.  One thread. */
int feed_next(struct feed *f, struct feed_unit *u, struct error *err);
void feed_close(struct feed *f);

#endif
