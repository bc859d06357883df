/* SPDX-License-Identifier: BSD-2-Clause */
/* A box of a tensor in memory, through the same map and pins that a mount uses. */
#ifndef TENSORS_BOXES_H
#define TENSORS_BOXES_H

#include "store/store.h"
#include "tensor/tensor.h"

/* Elements of `b` as served (little-endian, C order) to `out`, `size` bytes.  -ENODATA,
 * -EBADMSG, -ESTALE, ... with a sentence that names the part, as a read of a mount would
 * say.  Any thread.  What the box needs is decoded by the store's prefetch threads, too, if
 * it has any. */
int box_read(struct store *s, struct tensor *t, const struct box *b, void *out,
	     size_t size, struct error *err);
/* The same to a place where neighbours along axis i are pitch[i] bytes apart, the last
 * axis's being the size of an element: a box within a larger array. */
int box_read_into(struct store *s, struct tensor *t, const struct box *b,
		  void *out, const uint64_t *pitch, struct error *err);
/*
 * Is nothing stored of the box, so that it reads as `fill` (or, NULL, as any)?  If there
 * is, *hold has the first extent of it, which stays decoded for other reads until it is
 * let go with store_unpin (also when it holds nothing).  Decodes no more than that.
 */
int box_is_fill(struct store *s, struct tensor *t, const struct box *b,
		const struct fill *fill, bool *is, struct span *hold,
		struct error *err);

#endif
