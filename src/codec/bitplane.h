/* SPDX-License-Identifier: BSD-2-Clause */
/* Undo the transposition of bits that the bitshuffle filter does. */
#ifndef CODEC_BITPLANE_H
#define CODEC_BITPLANE_H

#include "codec/codec.h"

/*
 * Undo a bit shuffle of `n` elements (a multiple of 8) of `elem` bytes (> 0).  `in` is 8
 * * elem rows of n / 8 bytes.  Row 8 j + k holds bit k of byte j of every element,
 * element i in bit i % 8 of byte i / 8.  Paths are those of shuffle_undo; `in` and `out`
 * must not overlap.
 */
void bitplane_undo(enum shuffle_path path, const void *in, size_t n,
		   size_t elem, void *out);

#endif
