/* SPDX-License-Identifier: BSD-2-Clause */
/* Which elements of a stream form which chunks. */
#ifndef TENSORS_CHUNKER_STRIPS_H
#define TENSORS_CHUNKER_STRIPS_H

#include <stdint.h>

#include "base/error.h"
#include "tensor/grid.h"

/*
 * Elements come in C order, and the number of rows is not known in advance.  The elements
 * that must be present before a chunk can be cut form a strip: one position along each of
 * the leading axes along which chunks have a single element; along the next axis (`axis`)
 * as many slices as a chunk has; and all of the remaining axes.
 *
 *	chunk (1, 64, 64) of samples (64, 64)      axis 1, a strip is a sample
 *	chunk (32, 64, 64)                         axis 0, 32 samples
 *	chunk (1, 16, 32) of samples (4096, 4096)  axis 1, 16 lines of a sample
 *
 * Strips follow each other in the stream, and their chunks do in the grid: chunk i of
 * strip j has number j * (chunks of a strip) + i, whatever the length of the first axis.
 */
struct strips {
	unsigned rank;
	uint32_t elem; /* bytes of an element */
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	unsigned axis;  /* the axis along which strips are cut */
	unsigned flat;  /* chunks extend over all axes behind this one */
	uint64_t inner; /* bytes of a slice of `axis` */
	/* Slices along `axis`; unlimited for axis 0 until it is set. */
	uint64_t length;
	uint64_t per_length; /* strips along `axis` */
	uint64_t per_strip;  /* chunks in a strip */
	uint64_t chunk_bytes;
};
/* Arguments as in chunker_options.  Return 0, or -EINVAL if a strip has 2^64 bytes or
 * more. */
int strips_init(struct strips *b, unsigned rank, uint32_t elem,
		const uint64_t *shape, const uint64_t *chunk,
		struct error *err);
/* Number of slices of a strip. */
uint64_t strip_slices(const struct strips *b, uint64_t strip);
/* Position of a strip in the stream, in bytes. */
uint64_t strip_start(const struct strips *b, uint64_t strip);
/* Copy chunk `i` of a strip that has `slices` to `out`; what is beyond the edge is
 * zeros. */
void strip_cut(const struct strips *b, const void *strip, uint64_t slices,
	       uint64_t i, void *out);

#endif
