/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the file: what groups and datasets share.  The library's lock is held. */
#ifndef TENSORS_MERGE_MAKING_H
#define TENSORS_MERGE_MAKING_H

#include "tensors/merge/private.h"

struct making {
	struct merge *m;
	hid_t out;
	hid_t from; /* the file that is open, or -1 */
	uint32_t file;
	struct error *err;
};

/* -EIO: what the library said last. */
int making_failed(struct making *x, const struct item *it, const char *what);
/* Where the object is in its file. */
const char *making_place(const struct item *it);
/* Properties of an item's link. */
hid_t making_link(const struct item *it);

/*
 * An object of the output, without attributes; *to is to be closed.  `from`: what it is made
 * of, open; x->from may be closed on the way, and `from` with it.  A dataset or a type,
 * stored as it was; a dataset around chunks; one that the library puts together; one as
 * it is, whose elements point to others.
 */
int making_copy(struct making *x, const struct item *it, hid_t from, hid_t *to);
int making_stream(struct making *x, const struct item *it, hid_t from,
		  hid_t *to);
int making_values(struct making *x, const struct item *it, hid_t from,
		  hid_t *to);
int making_pointing(struct making *x, const struct item *it, hid_t from,
		    hid_t *to);
/* Do a dataset's elements, or refer to objects? */
bool making_points(hid_t dset);

#endif
