/* SPDX-License-Identifier: BSD-2-Clause */
/* A random order from a seed: the same everywhere, and the one that PyTorch makes. */
#ifndef BASE_SHUFFLE_H
#define BASE_SHUFFLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Set order[0 .. n-1] to the numbers 0 .. n-1 in the order that
 *	torch.randperm(n, generator=torch.Generator().manual_seed(seed))
 * gives on a CPU, for n < 214748364.  Beyond that versions of PyTorch differ, and the
 * order is our own.  As in PyTorch, only the low 32 bits of the seed count.
 */
void shuffle_order(uint64_t *order, uint64_t n, uint64_t seed);
/* As shuffle_order, in half the memory. */
void shuffle_order_32(uint32_t *order, uint32_t n, uint64_t seed);
/* Set order[0 .. k-1] to the first k elements of that order (k <= n, k < 2^30), in time
 * and memory proportional to k.  Return false if memory is out. */
bool shuffle_head(uint32_t *order, uint32_t k, uint32_t n, uint64_t seed);

#endif
