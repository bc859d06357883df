/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: what the first pass over a stream decodes, kept for its first reader. */
#ifndef STREAM_KEPT_H
#define STREAM_KEPT_H

#include "stream/stream_private.h"

/* The first bytes of a stream, decoded; as many as stream_keep left room for. */
struct kept;
/* NULL: nothing is to be kept, or there is no memory for it. */
struct kept *kept_new(void);
/* The next bytes of the stream.  `k` may be NULL, here and below. */
void kept_add(struct kept *k, const void *data, size_t n);
/* That was all; windows are these.  From now on any number of threads may take. */
void kept_end(struct kept *k, const struct stream_point *points, uint64_t n);
/* Window `i`, which is not kept any longer; its bytes count in `gauge` from now on.
 * NULL: it is not there, or was taken. */
struct buf *kept_take(struct kept *k, const struct stream_point *p, uint64_t i,
		      _Atomic uint64_t *gauge);
/* Buffers that were taken stay. */
void kept_free(struct kept *k);

#endif
