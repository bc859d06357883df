/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chunks of a sparse source exist, and which boxes of the array they touch. */
#ifndef TENSORS_RECHUNK_WRITTEN_H
#define TENSORS_RECHUNK_WRITTEN_H

#include "base/vec.h"
#include "tensor/tensor.h"

struct rechunk_written {
	bool known; /* false: any chunk may exist */
	/* `chunks` are blocks of this virtual dataset; NULL: chunks of `grid`. */
	const struct tensor *blocks_of;
	struct grid grid;
	vec(uint64_t) chunks; /* numbers, in order */
};
/* List the existing chunks.  out->known is false if that does not pay or is not possible:
 * there are few chunks, more than `most` exist, or the parts of a virtual dataset cover
 * much of it.  Return 0, or an error of libhdf5 for a damaged index. */
int rechunk_written_find(struct tensor *t, uint64_t most,
			 struct rechunk_written *out, struct error *err);
/* Number of boxes of another grid over the same array that these chunks touch, at
 * most. */
uint64_t rechunk_written_touch(const struct rechunk_written *w,
			       const struct grid *g);
/* List those boxes in order.  Return 1 and set *out, which the caller frees, and *n; 0 if
 * there are more than `most`; -ENOMEM. */
int rechunk_written_boxes(const struct rechunk_written *w, const struct grid *g,
			  uint64_t most, uint64_t **out, uint64_t *n,
			  struct error *err);
void rechunk_written_free(struct rechunk_written *w);

#endif
