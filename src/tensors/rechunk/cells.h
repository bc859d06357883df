/* SPDX-License-Identifier: BSD-2-Clause */
/* The pieces that a tensor is stored in, as a regular grid. */
#ifndef TENSORS_RECHUNK_CELLS_H
#define TENSORS_RECHUNK_CELLS_H

#include "tensor/tensor.h"

struct rechunk_cells {
	/* Shape, [rank], of the elements that are best read together: a chunk of the
	 * source, or about a MiB of contiguous data.  If there are several parts, that of
	 * the first one: the others are nearly always equal, and if not, only time is
	 * lost. */
	uint64_t cell[RANK_MAX];
	bool chunked; /* cells are chunks */
	/* The shape of chunks as stored; they may be larger than the array. */
	uint64_t chunk[RANK_MAX];
	uint64_t decoded; /* bytes that are decoded together, at most */
	/* Filters of the first part; NULL: none. */
	const struct pipeline *pipeline;
};
/* Look at every part.  Return 0, or -ENODATA if a part is missing. */
int rechunk_cells_find(struct tensor *t, struct rechunk_cells *out,
		       struct error *err);
/* Join cells until each is large enough for a job. */
void rechunk_cells_join(const struct tensor *t, uint64_t *cell);

#endif
