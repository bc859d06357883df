/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of elements, cut into chunks that are encoded by all threads. */
#ifndef TENSORS_CHUNKER_H
#define TENSORS_CHUNKER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/pipeline.h"
#include "tensor/grid.h"

/* Takes an encoded chunk of `n` bytes.  Called by any thread, one at a time, in order of
 * `number` (0, 1, ... in C order of the grid of chunks), and not after a failure.  `mask`
 * has the bits of filters that were skipped. */
typedef int chunker_put(void *ctx, uint64_t number, uint32_t mask,
			const void *data, size_t n, struct error *err);
struct chunker_options {
	unsigned rank; /* >= 1 */
	uint32_t elem; /* bytes of an element */
	/* All > 0; the first axis: the largest number that may come. */
	const uint64_t *shape;
	const uint64_t *chunk; /* all > 0, <= shape */
	struct pipeline pipeline;
	unsigned threads; /* threads that encode, at most; >= 1 */
	uint64_t memory;  /* bytes of memory for buffers */
	chunker_put *put;
	void *ctx;
};
struct chunker;
/* Start threads.  Return -ENOMEM with a sentence if `memory` is not enough for one row of
 * chunks. */
int chunker_new(struct chunker **out, const struct chunker_options *o,
		struct error *err);
/* Add the next `n` bytes in C order; `data` NULL: zeros.  Waits while all buffers are in
 * use.  After the first failure of any thread, this and all later calls return it.  To be
 * called by one thread. */
int chunker_add(struct chunker *c, const void *data, uint64_t n,
		struct error *err);
/* All elements came: `rows` along the first axis.  Wait until every chunk was put. */
int chunker_finish(struct chunker *c, uint64_t rows, struct error *err);
/* Length of a chunk along the first axis, which is at most the number of rows.  Valid
 * after chunker_finish. */
uint64_t chunker_rows_of_chunk(const struct chunker *c);
/* End the threads and free `c`, which may be NULL. */
void chunker_free(struct chunker *c);

#endif
