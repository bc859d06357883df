/* SPDX-License-Identifier: BSD-2-Clause */
/* The index at the end of .xz files, read before their blocks. */
/*
 * The index is used as a hint that tells where blocks end before they are decoded.  It
 * is verified later, by decoding, so a damaged index is ignored here and is not an
 * error.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_LZMA
#include "stream/xz_index.h"

#include <stdlib.h>

#include "base/number.h"

#define MEMORY_MOST (UINT64_C(64) << 20)
#define PIECE ((size_t)8192)
/* A file that needs more seeks has many small streams, which need no threads. */
#define SEEKS_MOST 4096

struct xz_index {
	lzma_index *index;
	lzma_index_iter iter;
	bool ended;
};

#if LZMA_VERSION >= UINT32_C(50040000)
/* Read bytes at *at, which advances past them.  Return their number, or 0 at the end
 * or on failure. */
static size_t xz_index_get(const struct backing *from, uint64_t *at,
			   unsigned char *to)
{
	size_t n = (size_t)min_u64(PIECE, from->size - *at);

	if (!n || backing_read(from, *at, to, n, NULL) < 0)
		return 0;
	*at += n;
	return n;
}

static lzma_index *xz_index_decode(const struct backing *from)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_index *index = NULL;
	unsigned char in[PIECE];
	uint64_t at = 0;
	unsigned seeks = 0;
	lzma_ret ret =
		lzma_file_info_decoder(&z, &index, MEMORY_MOST, from->size);

	while (ret == LZMA_OK || ret == LZMA_SEEK_NEEDED) {
		if (ret == LZMA_SEEK_NEEDED) {
			if (++seeks > SEEKS_MOST || z.seek_pos > from->size)
				break;
			at = z.seek_pos;
			z.avail_in = 0;
		}
		if (!z.avail_in) {
			z.next_in = in;
			z.avail_in = xz_index_get(from, &at, in);
			if (!z.avail_in)
				break;
		}
		ret = lzma_code(&z, LZMA_RUN);
	}
	lzma_end(&z);
	return ret == LZMA_STREAM_END ? index : NULL;
}

#else
/* Older versions of liblzma have no decoder for this: then only blocks whose header
 * has their size are decoded in parallel. */
static lzma_index *xz_index_decode(const struct backing *from)
{
	(void)from;
	return NULL;
}
#endif

struct xz_index *xz_index_read(const struct backing *from)
{
	lzma_index *index = xz_index_decode(from);
	struct xz_index *x = index ? calloc(1, sizeof *x) : NULL;

	if (!x) {
		lzma_index_end(index, NULL);
		return NULL;
	}
	x->index = index;
	lzma_index_iter_init(&x->iter, index);
	x->ended = lzma_index_iter_next(&x->iter, LZMA_INDEX_ITER_BLOCK);
	return x;
}

void xz_index_free(struct xz_index *x)
{
	if (x)
		lzma_index_end(x->index, NULL);
	free(x);
}

void xz_index_look_up(struct xz_index *x, uint64_t at, lzma_block *b)
{
	if (!x)
		return;
	while (!x->ended && x->iter.block.compressed_file_offset < at)
		x->ended =
			lzma_index_iter_next(&x->iter, LZMA_INDEX_ITER_BLOCK);
	if (x->ended || x->iter.block.compressed_file_offset != at ||
	    lzma_block_compressed_size(b, x->iter.block.unpadded_size) !=
		    LZMA_OK)
		return;
	b->uncompressed_size = x->iter.block.uncompressed_size;
}
#endif
