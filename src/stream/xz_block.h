/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the parts of .xz files: headers of streams and blocks, index and
 * footer. */
#ifndef STREAM_XZ_BLOCK_H
#define STREAM_XZ_BLOCK_H

#include <lzma.h>

#include "stream/slide.h"

/* A block's header, with room for its filters. */
struct xz_block {
	lzma_block block;
	lzma_filter filters[LZMA_FILTERS_MAX + 1];
};
/* Read the header of the next stream, past padding, and pass it.  `first`: it is the
 * first one of the file, so there is no padding.  Return 1, 0 at the end of the
 * file, or -errno. */
int xz_stream_header(struct slide *f, bool first, lzma_check *check,
		     struct error *err);
/* Read the header of the block at f->at, without passing it.  Return 1 (the caller
 * frees it with xz_block_free), 0 if the index follows instead, or -errno. */
int xz_block_header(struct slide *f, lzma_check check, struct xz_block *out,
		    struct error *err);
void xz_block_free(struct xz_block *b);
/* Return the memory in bytes that decoding the block takes. */
uint64_t xz_block_memory(const struct xz_block *b);
/* Make a decoder for a block, to be fed from the end of its header on.  The caller
 * ends it with lzma_end.  Return 0 or -errno. */
int xz_block_begin(struct xz_block *b, lzma_stream *to, struct error *err);
/* Pass the index and footer of a stream, and check that they fit its blocks.  Return
 * 0 or -errno. */
int xz_pass_index(struct slide *f, lzma_index_hash *hash, lzma_check check,
		  struct error *err);
/* Set the error for a failure of liblzma near offset `at`.  Returns its -errno. */
int xz_failed(lzma_ret ret, uint64_t at, struct error *err);
int xz_truncated(uint64_t at, struct error *err);

/* An implementation of stream_format.window. */
int xz_window(struct stream *s, uint64_t i, unsigned char *out,
	      struct error *err);

#endif
