/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads of a squeeze and codecs share. */
#ifndef PACK_SQUEEZE_PRIVATE_H
#define PACK_SQUEEZE_PRIVATE_H

#include "pack/squeeze.h"

/* A thread's own. */
struct squeeze_coder;
int coder_new(struct squeeze_coder **out, const struct squeeze_options *o,
	      struct error *err);
void coder_free(struct squeeze_coder *c);
/* Bytes that a block of `n` bytes becomes, at most; at least `n`. */
size_t coder_bound(const struct squeeze_options *o, size_t n);
/* Bytes of memory that a coder takes beside its buffers; a guess. */
uint64_t coder_memory(const struct squeeze_options *o);
/* `room` >= coder_bound(n).  *squeezed: false: it was stored. */
int coder_run(struct squeeze_coder *c, const void *from, size_t n, void *to,
	      size_t room, size_t *size, bool *squeezed, struct error *err);

#endif
