/* SPDX-License-Identifier: BSD-2-Clause */
/* The transposition of bits that bitshuffle is about, undone. */
#ifndef CODEC_BITPLANE_H
#define CODEC_BITPLANE_H

#include "codec/codec.h"

/*
 * Undo a bit shuffle of `n` elements (a multiple of 8) of `elem` bytes (> 0):
 * `in` is 8 * elem rows of n / 8 bytes, row 8 j + k holding bit k of byte j of
 * every element, element i in bit i % 8 of byte i / 8.  Paths are those of
 * shuffle_undo; in and out do not overlap.
 */
void bitplane_undo(enum shuffle_path path, const void *in, size_t n,
		   size_t elem, void *out);

#endif
