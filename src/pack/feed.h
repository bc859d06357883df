/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of the files of a scan, read ahead by many threads, delivered in order. */
#ifndef PACK_FEED_H
#define PACK_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/scan.h"
#include "shards/unit.h"

/* Files of up to FEED_WHOLE bytes come in one unit, larger ones in pieces of FEED_PIECE
 * bytes. */
#define FEED_WHOLE (UINT64_C(1) << 20)
#define FEED_PIECE (UINT64_C(4) << 20)

/* How files are read.  Extended attributes are those of the namespaces user, trusted and
 * security, except facts of a file system or a machine (security.selinux, trusted.lov and
 * the like) and those that tensorfs itself shows (user.tensorfs.*). */
struct feed_options {
	unsigned jobs; /* threads that read: >= 1 */
	/* Bytes that may wait to be delivered; one unit always may. */
	uint64_t memory;
	bool xattrs; /* read extended attributes */
	/* Read file contents; otherwise units have no data, and each entry is one unit. */
	bool data;
	/* Owner, group and time of all entries; UINT32_MAX, INT64_MIN: keep each entry's
	 * own. */
	uint32_t uid, gid;
	int64_t mtime;
	/* SOURCE_DATE_EPOCH: later times become this; INT64_MAX: no limit */
	int64_t mtime_most;
};
/*
 * Small files: attributes are those of the file that was opened.  A file that differs
 * from the scan when it is read is reported with scan_problem and delivered as it was
 * read.  A file that cannot be opened is reported and left out, as are hard links to it.
 *
 * Large files: attributes are those of the scan.  A file that became shorter meanwhile is
 * reported and padded with zeros.  A file that was replaced by another one is treated
 * like a file that is gone.
 *
 * An entry that was left out once is left out silently by later feeds of the same scan.
 */
struct feed;
/* Start the threads that read the entries of `s` below `top`.  `s` and `stop` must
 * outlive the feed, which is freed with feed_close. */
int feed_new(struct feed **out, struct scan *s, const char *top,
	     const struct feed_options *o, const _Atomic int *stop,
	     struct error *err);
/* Set *a to the attributes of an entry, as changed by the options. */
void feed_attr_set(struct feed_attr *a, const struct scan_entry *e,
		   const struct feed_options *o);
/* Wait for the next unit.  Return 1 if *u is set, which is valid until the next call; 0
 * after the last unit; -EINTR if *stop was set; -ENOMEM.  To be called by one thread
 * only. */
int feed_next(struct feed *f, struct feed_unit *u, struct error *err);
/* End the threads and free `f`, which may be NULL. */
void feed_close(struct feed *f);

#endif
