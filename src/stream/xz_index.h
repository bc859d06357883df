/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the index at the end of .xz files, read before their blocks. */
#ifndef STREAM_XZ_INDEX_H
#define STREAM_XZ_INDEX_H

#include <lzma.h>

#include "stream/backing.h"

struct xz_index;
/* Read the indexes of all streams of the file.  Return NULL if there is no valid
 * one.  The caller frees it. */
struct xz_index *xz_index_read(const struct backing *from);
void xz_index_free(struct xz_index *x);
/* Set the sizes of the block at offset `at`, if it is in the index.  `at` must not
 * be less than in the call before; `x` may be NULL. */
void xz_index_look_up(struct xz_index *x, uint64_t at, lzma_block *b);

#endif
