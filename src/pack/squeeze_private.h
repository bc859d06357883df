/* SPDX-License-Identifier: BSD-2-Clause */
/* The compression of single blocks, as the threads of a squeeze use it. */
#ifndef PACK_SQUEEZE_PRIVATE_H
#define PACK_SQUEEZE_PRIVATE_H

#include "pack/squeeze.h"

/* State of one thread; not to be shared. */
struct squeeze_coder;
/* The options must outlive the coder.  Return 0 or -ENOMEM. */
int coder_new(struct squeeze_coder **out, const struct squeeze_options *o,
	      struct error *err);
/* `c` may be NULL. */
void coder_free(struct squeeze_coder *c);
/* Largest size in bytes of a compressed block of `n` bytes; at least `n`. */
size_t coder_bound(const struct squeeze_options *o, size_t n);
/* Estimated bytes of memory of a coder, without its buffers. */
uint64_t coder_memory(const struct squeeze_options *o);
/* Compress `n` bytes to `to`, where `room` >= coder_bound(n).  Set *size to the number of
 * bytes, and *squeezed to false if they were stored. */
int coder_run(struct squeeze_coder *c, const void *from, size_t n, void *to,
	      size_t room, size_t *size, bool *squeezed, struct error *err);

#endif
