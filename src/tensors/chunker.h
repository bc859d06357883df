/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of elements, cut into chunks, which all threads encode. */
#ifndef TENSORS_CHUNKER_H
#define TENSORS_CHUNKER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/pipeline.h"
#include "tensor/grid.h"

/* Takes an encoded chunk: one at a time, in order of `number` (0, 1, ... in C order of the
 * grid of chunks), by any thread; none after a failure.  `mask`: filters that were skipped. */
typedef int chunker_put(void *ctx, uint64_t number, uint32_t mask,
			const void *data, size_t n, struct error *err);
struct chunker_options {
	unsigned rank; /* >= 1 */
	uint32_t elem; /* bytes of an element */
	const uint64_t
		*shape; /* all > 0; of the first axis: the most that come */
	const uint64_t *chunk; /* all > 0, <= shape */
	struct pipeline pipeline;
	unsigned threads; /* that encode, at most; >= 1 */
	uint64_t memory;  /* bytes for buffers */
	chunker_put *put;
	void *ctx;
};
struct chunker;
/* -ENOMEM with a sentence: `memory` is not enough for one row of chunks. */
int chunker_new(struct chunker **out, const struct chunker_options *o,
		struct error *err);
/* The next `n` bytes in C order; NULL: zeros.  Waits while all buffers are in use.  The
 * first failure, of whoever, is that of every later call.  One thread. */
int chunker_add(struct chunker *c, const void *data, uint64_t n,
		struct error *err);
/* That was all: `rows` of the first axis.  Every chunk was put. */
int chunker_finish(struct chunker *c, uint64_t rows, struct error *err);
/* The chunk along the first axis: not more than there are rows (after finish). */
uint64_t chunker_rows_of_chunk(const struct chunker *c);
/* Ends threads; `c` may be NULL. */
void chunker_free(struct chunker *c);

#endif
