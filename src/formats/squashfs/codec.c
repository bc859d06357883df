/* SPDX-License-Identifier: BSD-2-Clause */
/* The compressors of squashfs, as decoders of one block. */
/*
 * A block is a zlib stream, an xz stream (with filters for machine code, if
 * wanted), a zstd frame, or a raw block of LZ4 or LZO1X.  The first and the last
 * frame are what filters of HDF5 are as well.  The raw ones do not say where they
 * end: they fail when `room` is not enough, and no decoder writes beyond it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "formats/squashfs/private.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_LZO
#include <lzo/lzo1x.h>
#endif

/* Dictionaries are no larger than a block; the rest is the decoder. */
#define XZ_MEMORY (UINT64_C(8) << 20)

static int lz4_block(const struct codec_params *p, const void *in,
		     size_t in_len, void *out, size_t out_cap, size_t *out_len,
		     struct error *err)
{
	int n;

	(void)p;
	if (in_len > INT_MAX || out_cap > INT_MAX)
		return error_set(err, -EBADMSG, "lz4: the block is too long");
	n = LZ4_decompress_safe(in, out, (int)in_len, (int)out_cap);
	if (n < 0)
		return error_set(err, -EBADMSG,
				 "lz4: %zu stored bytes do not decode to at "
				 "most %zu",
				 in_len, out_cap);
	*out_len = (size_t)n;
	return 0;
}
static const struct codec raw_lz4 = {.name = "lz4", .decode = lz4_block};

#if HAVE_LZMA
static int xz_block(const struct codec_params *p, const void *in, size_t in_len,
		    void *out, size_t out_cap, size_t *out_len,
		    struct error *err)
{
	uint64_t memory = XZ_MEMORY;
	size_t at = 0, made = 0;

	(void)p;
	switch (lzma_stream_buffer_decode(&memory, 0, NULL, in, &at, in_len,
					  out, &made, out_cap)) {
	case LZMA_OK:
		break;
	case LZMA_MEM_ERROR:
		return error_set(err, -ENOMEM, "xz: no memory for decoding");
	case LZMA_BUF_ERROR:
		return error_set(err, -ENOSPC,
				 "xz: %zu stored bytes decode to more than %zu",
				 in_len, out_cap);
	case LZMA_MEMLIMIT_ERROR:
		return error_set(err, -EBADMSG,
				 "xz: decoding would take %llu bytes of memory",
				 (unsigned long long)memory);
	case LZMA_OPTIONS_ERROR:
		return error_set(err, -ENOTSUP,
				 "xz: a filter that liblzma does not have");
	default:
		return error_set(err, -EBADMSG,
				 "xz: %zu stored bytes are no whole stream "
				 "with a right checksum",
				 in_len);
	}
	*out_len = made;
	return 0;
}
static const struct codec xz = {
	.name = "xz", .has_checksum = true, .decode = xz_block};
#define XZ_CODEC &xz
#else
#define XZ_CODEC NULL
#endif

#if HAVE_LZO
static int lzo_block(const struct codec_params *p, const void *in,
		     size_t in_len, void *out, size_t out_cap, size_t *out_len,
		     struct error *err)
{
	lzo_uint made = out_cap;

	(void)p;
	switch (lzo1x_decompress_safe(in, in_len, out, &made, NULL)) {
	case LZO_E_OK:
		*out_len = made;
		return 0;
	case LZO_E_OUTPUT_OVERRUN:
		return error_set(err, -ENOSPC,
				 "lzo: %zu stored bytes decode to more than "
				 "%zu",
				 in_len, out_cap);
	default:
		return error_set(err, -EBADMSG,
				 "lzo: %zu stored bytes are no block", in_len);
	}
}
static const struct codec lzo = {.name = "lzo", .decode = lzo_block};
#define LZO_CODEC &lzo
#else
#define LZO_CODEC NULL
#endif

static const struct squashfs_codec table[] = {
	{1, "gzip", &codec_deflate}, {2, "lzma", NULL},
	{3, "lzo", LZO_CODEC},       {4, "xz", XZ_CODEC},
	{5, "lz4", &raw_lz4},        {6, "zstd", &codec_zstd},
};

const struct squashfs_codec *squashfs_codec(unsigned id)
{
	return id >= 1 && id <= sizeof table / sizeof table[0] ? &table[id - 1]
							       : NULL;
}

const char *squashfs_compressor_name(unsigned compressor)
{
	const struct squashfs_codec *c = squashfs_codec(compressor);

	return c ? c->name : "unknown";
}

const struct codec *squashfs_block_codec(const struct squashfs_info *info)
{
	const struct squashfs_codec *c = squashfs_codec(info->compressor);

	return c ? c->codec : NULL;
}

int squashfs_block_decode(const struct squashfs_info *info,
			  const struct member_block *b, const void *stored,
			  void *out, size_t room, size_t *made,
			  struct error *err)
{
	const struct squashfs_codec *c = squashfs_codec(info->compressor);
	int r;

	if (!c || !c->codec)
		return error_set(err, -ENOTSUP,
				 "no decoder for the compressor %s",
				 squashfs_compressor_name(info->compressor));
	r = c->codec->decode(NULL, stored, b->stored, out, room, made, err);
	if (r == -ENOSPC)
		return error_set(err, -EBADMSG,
				 "%s: %u stored bytes decode to more than %zu",
				 c->name, b->stored, room);
	if (r < 0)
		return r;
	if (*made < b->size || (*made > b->size && !(b->flags & MEMBER_SHARED)))
		return error_set(err, -EBADMSG,
				 "%s: decodes to %zu bytes instead of %u",
				 c->name, *made, b->size);
	return 0;
}
