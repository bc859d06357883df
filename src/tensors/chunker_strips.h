/* SPDX-License-Identifier: BSD-2-Clause */
/* Which elements of a stream make which chunks. */
#ifndef TENSORS_CHUNKER_STRIPS_H
#define TENSORS_CHUNKER_STRIPS_H

#include <stdint.h>

#include "base/error.h"
#include "tensor/grid.h"

/*
 * Elements come in C order, and nobody knows how many rows there will be.  What has to
 * be together before a chunk can be cut is a band: of the axes in front, along which
 * chunks have one element, one position each; of the next one (`axis`) as many slices as
 * a chunk has; of the others everything.
 *
 *	chunk (1, 64, 64) of samples (64, 64)      axis 1, a band is a sample
 *	chunk (32, 64, 64)                         axis 0, 32 samples
 *	chunk (1, 16, 32) of samples (4096, 4096)  axis 1, 16 lines of a sample
 *
 * Bands follow each other in the stream, and so do their chunks in the grid: chunk i of
 * band j has number j * (chunks of a band) + i, however long the first axis becomes.
 */
struct strips {
	unsigned rank;
	uint32_t elem; /* bytes */
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	unsigned axis;       /* along which bands are cut */
	unsigned flat;       /* chunks have all of the axes behind this one */
	uint64_t inner;      /* bytes of a slice of `axis` */
	uint64_t length;     /* slices; of axis 0: no end, until it is set */
	uint64_t per_length; /* bands along it */
	uint64_t per_strip;  /* chunks in a band */
	uint64_t chunk_bytes;
};
/* Numbers as of chunker_options.  -EINVAL: a band is larger than any memory. */
int strips_init(struct strips *b, unsigned rank, uint32_t elem,
		const uint64_t *shape, const uint64_t *chunk,
		struct error *err);
/* Slices of a band. */
uint64_t strip_slices(const struct strips *b, uint64_t strip);
/* Where it begins in the stream, in bytes. */
uint64_t strip_start(const struct strips *b, uint64_t strip);
/* Chunk `i` of a band that has `slices`; what overhangs is zeros. */
void strip_cut(const struct strips *b, const void *strip, uint64_t slices,
	       uint64_t i, void *out);

#endif
