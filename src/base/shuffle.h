/* SPDX-License-Identifier: BSD-2-Clause */
/* A random order that a seed makes: the same everywhere, and that of PyTorch. */
#ifndef BASE_SHUFFLE_H
#define BASE_SHUFFLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * order[0 .. n-1] become the numbers 0 .. n-1 as
 *	torch.randperm(n, generator=torch.Generator().manual_seed(seed))
 * gives them on a CPU, for n < 214748364; beyond that versions of PyTorch differ, and
 * this is ours.  As there, only the low 32 bits of the seed count.
 */
void shuffle_order(uint64_t *order, uint64_t n, uint64_t seed);
/* The same, in half the memory. */
void shuffle_order_32(uint32_t *order, uint32_t n, uint64_t seed);
/* Its first k elements (k <= n, k < 2^30), in time and memory that go with k.  False: no
 * memory. */
bool shuffle_head(uint32_t *order, uint32_t k, uint32_t n, uint64_t seed);

#endif
