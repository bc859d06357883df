/* SPDX-License-Identifier: BSD-2-Clause */
/* A bit for each chunk of a stream, and chunks of a box. */
#ifndef TENSORS_MERGE_BITS_H
#define TENSORS_MERGE_BITS_H

#include "tensors/merge/private.h"

static inline size_t bits_words(uint64_t n)
{
	return (size_t)(n / 64 + 1);
}
static inline bool bits_get(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}
static inline void bits_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= UINT64_C(1) << (i % 64);
}
/* True: it was not set before, and is the caller's. */
static inline bool bits_claim(_Atomic uint64_t *bits, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	return !(atomic_fetch_or(&bits[i / 64], bit) & bit);
}

/* Chunks of a grid in C order, of a box of it: those that it touches, or (begin) those
 * whose first element is in it. */
struct chunk_range {
	uint64_t first[RANK_MAX], n[RANK_MAX], count;
};
void chunk_range_init(struct chunk_range *r, const struct grid *g,
		      const struct box *b, bool begin);
/* Number i of the range, as one of the grid. */
uint64_t chunk_range_at(const struct chunk_range *r, const struct grid *g,
			uint64_t i);
/* Are all chunks that part p has elements of safe?  False where that is not easily
 * known. */
bool merge_part_is_safe(const struct stream *s, uint32_t p);

#endif
