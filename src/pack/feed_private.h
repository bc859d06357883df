/* SPDX-License-Identifier: BSD-2-Clause */
/* What the threads of a feed (feed.c) and the reading of one entry (feed_read.c)
 * share. */
#ifndef PACK_FEED_PRIVATE_H
#define PACK_FEED_PRIVATE_H

#include "pack/feed.h"

enum feed_outcome {
	FEED_FINE,
	FEED_CHANGED, /* delivered, but it differs from the scan */
	FEED_GONE     /* it cannot be read and is left out */
};
struct feed_piece {
	struct feed_unit u;
	enum feed_outcome outcome;
	int code; /* errno of FEED_GONE; 0: see `why` */
	const char *why;
	void *extra; /* a buffer for a file that has grown since the scan */
	char *link;
	struct feed_extent *extents;
	struct feed_xattr *xattrs; /* one allocation, with names and values */
};
/* What reading an entry needs of the feed. */
struct feed_source {
	const struct scan *scan;
	struct feed_options o;
	int top;
	_Atomic bool no_xattrs; /* the file system has no extended attributes */
};
/* Is this entry delivered in pieces? */
bool feed_is_large(const struct feed_source *f, uint64_t entry);
/* Read entry p->u.entry from byte p->u.at on, p->u.size bytes according to the scan, into
 * `data`.  Failures to read are recorded in `p`.  Return false if there is no memory. */
bool feed_read(struct feed_source *f, struct feed_piece *p, void *data);
/* Free what a piece owns, and clear it. */
void feed_piece_free(struct feed_piece *p);

#endif
