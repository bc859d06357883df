/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: what the first pass over a stream decodes, kept for its first reader. */
#ifndef STREAM_FIRST_PASS_H
#define STREAM_FIRST_PASS_H

#include "stream/stream_private.h"

/* The first bytes of a stream, decoded; as many as stream_keep left room for. */
struct first_pass;
/* NULL: nothing is to be kept, or there is no memory for it. */
struct first_pass *first_pass_new(void);
/* The next bytes of the stream.  `k` may be NULL, here and below. */
void first_pass_add(struct first_pass *k, const void *data, size_t n);
/* That was all; windows are these.  From now on any number of threads may take. */
void first_pass_end(struct first_pass *k, const struct stream_point *points,
		    uint64_t n);
/* Window `i`, which is not kept any longer; its bytes count in `gauge` from now on.
 * NULL: it is not there, or was taken. */
struct buf *first_pass_take(struct first_pass *k, const struct stream_point *p,
			    uint64_t i, _Atomic uint64_t *gauge);
/* Buffers that were taken stay. */
void first_pass_free(struct first_pass *k);

#endif
