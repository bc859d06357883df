/* SPDX-License-Identifier: BSD-2-Clause */
/* Read a box of a tensor into memory, through the map and pins that a mount uses. */
#ifndef TENSORS_BOXES_H
#define TENSORS_BOXES_H

#include "store/store.h"
#include "tensor/tensor.h"

/* Read the elements of `b` as served (little-endian, C order) to `out`, which has `size`
 * bytes.  Return 0, or -ENODATA, -EBADMSG, -ESTALE, ... with a sentence that names the
 * part, as for a read of a mount.  Any thread; blocks.  The store's prefetch threads, if
 * it has any, decode what comes next. */
int box_read(struct store *s, struct tensor *t, const struct box *b, void *out,
	     size_t size, struct error *err);
/* As box_read, into a larger array: neighbours along axis i are pitch[i] bytes apart; the
 * pitch of the last axis is the size of an element. */
int box_read_into(struct store *s, struct tensor *t, const struct box *b,
		  void *out, const uint64_t *pitch, struct error *err);
/*
 * Set *is to true if nothing of the box is stored, so that it reads as `fill` (or, if
 * that is NULL, as any fill value).  Otherwise *hold is the first stored extent, which
 * stays decoded for other reads until the caller passes it to store_unpin; that is
 * allowed for an empty *hold, too.  Decodes no more than that extent.
 */
int box_is_fill(struct store *s, struct tensor *t, const struct box *b,
		const struct fill *fill, bool *is, struct span *hold,
		struct error *err);

#endif
