/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the parts of .xz files, and a cursor that decodes their blocks. */
#ifndef STREAM_XZ_BLOCK_H
#define STREAM_XZ_BLOCK_H

#include <lzma.h>

#include "stream/slide.h"

/* A block's header, with room for what it points to. */
struct xz_block {
	lzma_block block;
	lzma_filter filters[LZMA_FILTERS_MAX + 1];
};
/* The header of the next stream, past padding; it is passed.  1, 0 at the end,
 * -errno.  `first`: of the file. */
int xz_stream_header(struct slide *f, bool first, lzma_check *check,
		     struct error *err);
/* The header of the block that begins at f->at; it is not passed.  1 (free it), 0
 * where the index follows, -errno. */
int xz_block_header(struct slide *f, lzma_check check, struct xz_block *out,
		    struct error *err);
void xz_block_free(struct xz_block *b);
/* Memory that decoding takes. */
uint64_t xz_block_memory(const struct xz_block *b);
/* A decoder for a block whose header was passed; lzma_end it. */
int xz_block_begin(struct xz_block *b, lzma_stream *to, struct error *err);
/* Pass index and footer of a stream; they have to be those of its blocks. */
int xz_pass_index(struct slide *f, lzma_index_hash *hash, lzma_check check,
		  struct error *err);
/* What ended decoding near `at`. */
int xz_failed(lzma_ret ret, uint64_t at, struct error *err);
int xz_truncated(uint64_t at, struct error *err);

/* What stream_format.window is to do. */
int xz_window(struct stream *s, uint64_t i, unsigned char *out,
	      struct error *err);

#endif
