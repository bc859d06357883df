/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the first-pass cache, which holds what the first pass over a stream
 * decoded until it is read. */
#ifndef STREAM_FIRST_PASS_H
#define STREAM_FIRST_PASS_H

#include "stream/stream_private.h"

/* The first decoded bytes of a stream; as many as fit into the bound of stream_first_pass_limit. */
struct first_pass;
/* Return an empty cache, or NULL if nothing is to be kept or there is no memory for
 * it.  The caller frees it. */
struct first_pass *first_pass_new(void);
/* Add the next n bytes of the stream.  `k` may be NULL here and below: then nothing
 * is done. */
void first_pass_add(struct first_pass *k, const void *data, size_t n);
/* End the pass: the stream has these n windows.  From now on any number of threads
 * may call first_pass_take. */
void first_pass_end(struct first_pass *k, const struct stream_point *points,
		    uint64_t n);
/* Take window `i` out of the cache.  Return a buffer over its bytes, which count in
 * `gauge` from now on, or NULL if it is not there or was taken already. */
struct buf *first_pass_take(struct first_pass *k, const struct stream_point *p,
			    uint64_t i, _Atomic uint64_t *gauge);
/* Free the cache.  Buffers that were taken stay valid. */
void first_pass_free(struct first_pass *k);

#endif
