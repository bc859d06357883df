/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the threads of a feed and what they do with one entry. */
#ifndef PACK_FEED_PRIVATE_H
#define PACK_FEED_PRIVATE_H

#include "pack/feed.h"

enum feed_outcome {
	FEED_FINE,
	FEED_CHANGED, /* given, but not what it was */
	FEED_GONE     /* it cannot be read: left out */
};
struct feed_piece {
	struct feed_unit u;
	enum feed_outcome outcome;
	int code; /* errno of GONE; 0: `why` says it all */
	const char *why;
	void *extra; /* what did not fit in its place */
	char *link;
	struct feed_extent *extents;
	struct feed_xattr *xattrs; /* one block with names and values */
};
/* What reading needs to know of the whole. */
struct feed_source {
	const struct scan *scan;
	struct feed_options o;
	int top;
	_Atomic bool no_xattrs; /* the file system has none */
};
/* Bytes of this entry come in pieces. */
bool feed_is_large(const struct feed_source *f, uint64_t entry);
/* Read p->u.entry from p->u.at on, p->u.size bytes as the scan has them, to `data`.
 * False: no memory. */
bool feed_read(struct feed_source *f, struct feed_piece *p, void *data);
void feed_piece_free(struct feed_piece *p);

#endif
