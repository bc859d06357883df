/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a sparse source there is, and which boxes of the array that touches. */
#ifndef TENSORS_RECHUNK_WRITTEN_H
#define TENSORS_RECHUNK_WRITTEN_H

#include "base/vec.h"
#include "tensor/tensor.h"

struct rechunk_written {
	bool known; /* else: all may have been written */
	/* Blocks of this virtual dataset; NULL: chunks of `grid`. */
	const struct tensor *blocks_of;
	struct grid grid;
	vec(uint64_t) chunks; /* in order */
};
/* Not known where more than a few of them are, or more than `most`.  What libhdf5 says of
 * a damaged index. */
int rechunk_written_find(struct tensor *t, uint64_t most,
			 struct rechunk_written *out, struct error *err);
/* How many boxes of another grid over the same array these touch, at most. */
uint64_t rechunk_written_touch(const struct rechunk_written *w,
			       const struct grid *g);
/* Which ones, in order: 1 and *out (malloc'ed) and *n; 0: more than `most`; -ENOMEM. */
int rechunk_written_boxes(const struct rechunk_written *w, const struct grid *g,
			  uint64_t most, uint64_t **out, uint64_t *n,
			  struct error *err);
void rechunk_written_free(struct rechunk_written *w);

#endif
