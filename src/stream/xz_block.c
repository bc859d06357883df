/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of .xz files: headers of streams and of blocks. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_LZMA
#include "stream/xz_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of memory that decoding a block may take.  Blocks of xz -9 take 65 MiB. */
#define MEMORY_MOST (UINT64_C(256) << 20)

int xz_truncated(uint64_t at, struct error *err)
{
	return error_set(err, -EIO,
			 "xz: the data ends at %llu, within a stream: "
			 "truncated?",
			 (unsigned long long)at);
}

int xz_failed(lzma_ret ret, uint64_t at, struct error *err)
{
	unsigned long long where = at;

	switch (ret) {
	case LZMA_MEM_ERROR:
		return error_no_memory(err, "decoding xz data");
	case LZMA_OPTIONS_ERROR:
		return error_set(err, -ENOTSUP,
				 "xz: at %llu: a filter or an option that "
				 "liblzma %s does not know",
				 where, lzma_version_string());
	default:
		return error_set(err, -EBADMSG,
				 "xz: at %llu: damaged (liblzma says %d)",
				 where, (int)ret);
	}
}

/* Pass the padding between streams: zeros, in multiples of four bytes (.xz file
 * format, section 2.2). */
static int xz_pass_padding(struct slide *f, struct error *err)
{
	static const unsigned char zeros[4];

	for (;;) {
		ssize_t r = slide_need(f, 4, err);

		if (r < 0)
			return (int)r;
		if (r < 4 || memcmp(f->data, zeros, 4) != 0)
			return 0;
		slide_drop(f, 4);
	}
}

int xz_stream_header(struct slide *f, bool first, lzma_check *check,
		     struct error *err)
{
	lzma_stream_flags flags;
	lzma_ret ret;
	ssize_t r;
	int code = first ? 0 : xz_pass_padding(f, err);

	if (code < 0)
		return code;
	r = slide_need(f, LZMA_STREAM_HEADER_SIZE, err);
	if (r <= 0)
		return (int)r;
	if (r < LZMA_STREAM_HEADER_SIZE)
		return xz_truncated(f->at + (uint64_t)r, err);
	ret = lzma_stream_header_decode(&flags, f->data);
	if (ret == LZMA_FORMAT_ERROR)
		return error_set(
			err, -EBADMSG,
			"xz: the bytes from %llu on are not an xz stream",
			(unsigned long long)f->at);
	if (ret != LZMA_OK)
		return xz_failed(ret, f->at, err);
	slide_drop(f, LZMA_STREAM_HEADER_SIZE);
	*check = flags.check;
	return 1;
}

/* ---- blocks -------------------------------------------------------------- */

void xz_block_free(struct xz_block *b)
{
	for (unsigned i = 0; b->filters[i].id != LZMA_VLI_UNKNOWN; i++)
		free(b->filters[i].options);
	b->filters[0].id = LZMA_VLI_UNKNOWN;
}

uint64_t xz_block_memory(const struct xz_block *b)
{
	return lzma_raw_decoder_memusage(b->filters);
}

static int xz_check_memory(const struct xz_block *b, uint64_t at,
			   struct error *err)
{
	uint64_t need = xz_block_memory(b);

	if (need == UINT64_MAX)
		return xz_failed(LZMA_OPTIONS_ERROR, at, err);
	if (need > MEMORY_MOST)
		return error_set(err, -ENOTSUP,
				 "xz: decoding the block at %llu takes %llu "
				 "MiB, more than the %llu that are used at "
				 "most; compress with a smaller dictionary",
				 (unsigned long long)at,
				 (unsigned long long)(need >> 20),
				 (unsigned long long)(MEMORY_MOST >> 20));
	return 0;
}

int xz_block_header(struct slide *f, lzma_check check, struct xz_block *out,
		    struct error *err)
{
	lzma_ret ret;
	ssize_t r = slide_need(f, 1, err);
	int code;

	if (r < 0)
		return (int)r;
	if (r == 0)
		return xz_truncated(f->at, err);
	if (!f->data[0])
		return 0;
	memset(out, 0, sizeof *out);
	out->filters[0].id = LZMA_VLI_UNKNOWN;
	out->block.version = 1;
	out->block.check = check;
	out->block.filters = out->filters;
	out->block.header_size = lzma_block_header_size_decode(f->data[0]);
	r = slide_need(f, out->block.header_size, err);
	if (r < 0)
		return (int)r;
	if ((uint32_t)r < out->block.header_size)
		return xz_truncated(f->at + (uint64_t)r, err);
	ret = lzma_block_header_decode(&out->block, NULL, f->data);
	if (ret != LZMA_OK) {
		out->filters[0].id = LZMA_VLI_UNKNOWN;
		return xz_failed(ret, f->at, err);
	}
	code = xz_check_memory(out, f->at, err);
	if (code < 0)
		xz_block_free(out);
	return code < 0 ? code : 1;
}

int xz_block_begin(struct xz_block *b, lzma_stream *to, struct error *err)
{
	lzma_ret ret;

	/* The struct may have been copied since its header was read. */
	b->block.filters = b->filters;
	ret = lzma_block_decoder(to, &b->block);
	return ret == LZMA_OK ? 0 : xz_failed(ret, 0, err);
}

/* ---- the end of a stream ------------------------------------------------- */

int xz_pass_index(struct slide *f, lzma_index_hash *hash, lzma_check check,
		  struct error *err)
{
	lzma_stream_flags flags;
	lzma_ret ret = LZMA_OK;
	ssize_t r;

	while (ret == LZMA_OK) {
		size_t used = 0;

		r = slide_need(f, 1, err);
		if (r <= 0)
			return r < 0 ? (int)r : xz_truncated(f->at, err);
		ret = lzma_index_hash_decode(hash, f->data, &used, f->n);
		slide_drop(f, used);
	}
	if (ret != LZMA_STREAM_END)
		return error_set(err, -EBADMSG,
				 "xz: the index at %llu does not fit the "
				 "blocks before it",
				 (unsigned long long)f->at);
	r = slide_need(f, LZMA_STREAM_HEADER_SIZE, err);
	if (r < 0)
		return (int)r;
	if (r < LZMA_STREAM_HEADER_SIZE)
		return xz_truncated(f->at + (uint64_t)r, err);
	ret = lzma_stream_footer_decode(&flags, f->data);
	if (ret != LZMA_OK || flags.check != check ||
	    flags.backward_size != lzma_index_hash_size(hash))
		return error_set(err, -EBADMSG,
				 "xz: the footer at %llu is damaged",
				 (unsigned long long)f->at);
	slide_drop(f, LZMA_STREAM_HEADER_SIZE);
	return 0;
}
#endif
