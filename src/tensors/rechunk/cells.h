/* SPDX-License-Identifier: BSD-2-Clause */
/* The pieces that a tensor is stored in, as a regular grid. */
#ifndef TENSORS_RECHUNK_CELLS_H
#define TENSORS_RECHUNK_CELLS_H

#include "tensor/tensor.h"

struct rechunk_cells {
	/* What is best read together, [rank]: a chunk of the source, or a MiB or so of
	 * contiguous data.  Of several parts, the first one's: the others are nearly
	 * always the same, and where not, only time is lost. */
	uint64_t cell[RANK_MAX];
	bool chunked; /* these are chunks */
	/* If so, as they are: they may be larger than the array. */
	uint64_t chunk[RANK_MAX];
	uint64_t decoded; /* bytes that are decoded together, at most */
	const struct pipeline *pipeline; /* of the first part; NULL: none */
};
/* Learns every part.  -ENODATA: one is missing. */
int rechunk_cells_find(struct tensor *t, struct rechunk_cells *out,
		       struct error *err);
/* Make cells larger until they are worth a job each. */
void rechunk_cells_join(const struct tensor *t, uint64_t *cell);

#endif
