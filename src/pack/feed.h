/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files of a scan, read ahead by many threads, given out in order. */
#ifndef PACK_FEED_H
#define PACK_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/scan.h"
#include "shards/unit.h"

/* Small files come whole, larger ones in pieces of so many bytes. */
#define FEED_WHOLE (UINT64_C(1) << 20)
#define FEED_PIECE (UINT64_C(4) << 20)

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
