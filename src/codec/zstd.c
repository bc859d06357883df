/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32015, zstd: one or more Zstandard frames. */
/*
 * Frames (RFC 8878) are decoded one by one, each only after its magic number was checked:
 * libzstd is often built with the decoders of the formats before 1.0 as well, which no
 * HDF5 file holds and no hostile file must reach.  The content size in a frame's header
 * is never used to allocate anything.
 */
#include "codec/codec.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"

static _Thread_local ZSTD_DCtx *context;

static void context_free(void)
{
	ZSTD_freeDCtx(context);
	context = NULL;
}

static ZSTD_DCtx *context_get(void)
{
	if (context)
		return context;
	if (codec_thread_at_exit(context_free) < 0)
		return NULL;
	context = ZSTD_createDCtx();
	return context;
}

static int zstd_is_frame(const unsigned char *in, size_t in_len)
{
	uint32_t magic;

	if (in_len < 4)
		return 0;
	magic = load_le32(in);
	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) ==
		       ZSTD_MAGIC_SKIPPABLE_START;
}

static int zstd_fail(size_t code, size_t room, struct error *err)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_dstSize_tooSmall:
		return error_set(err, -ENOSPC,
				 "zstd: the frames decode to more than the "
				 "%zu bytes left",
				 room);
	case ZSTD_error_memory_allocation:
		return error_no_memory(err, "a zstd decompressor");
	default:
		return error_set(err, -EBADMSG, "zstd: %s",
				 ZSTD_getErrorName(code));
	}
}

static int zstd_decode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	const unsigned char *from = in;
	unsigned char *to = out;
	ZSTD_DCtx *d = context_get();
	size_t made = 0;

	(void)p;
	if (!d)
		return error_no_memory(err, "a zstd decompressor");
	do {
		size_t frame, n;

		if (!zstd_is_frame(from, in_len))
			return error_set(err, -EBADMSG,
					 "zstd: %zu of the stored bytes are "
					 "not a Zstandard frame",
					 in_len);
		frame = ZSTD_findFrameCompressedSize(from, in_len);
		if (ZSTD_isError(frame))
			return zstd_fail(frame, out_cap - made, err);
		n = ZSTD_decompressDCtx(d, to + made, out_cap - made, from,
					frame);
		if (ZSTD_isError(n))
			return zstd_fail(n, out_cap - made, err);
		made += n;
		from += frame;
		in_len -= frame;
	} while (in_len);
	*out_len = made;
	return 0;
}

static _Thread_local ZSTD_CCtx *compressor;

static void zstd_compressor_free(void)
{
	ZSTD_freeCCtx(compressor);
	compressor = NULL;
}

static ZSTD_CCtx *zstd_compressor_get(void)
{
	if (compressor)
		return compressor;
	if (codec_thread_at_exit(zstd_compressor_free) < 0)
		return NULL;
	compressor = ZSTD_createCCtx();
	return compressor;
}

/* The first client value; if it is missing or 0, libzstd's default level. */
static int zstd_level(const struct codec_params *p)
{
	int level = p->n ? (int)p->cd[0] : 0;

	if (level > ZSTD_maxCLevel())
		return ZSTD_maxCLevel();
	return level < ZSTD_minCLevel() ? ZSTD_minCLevel() : level;
}

static int zstd_encode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	ZSTD_CCtx *c = zstd_compressor_get();
	size_t n;

	if (!c)
		return error_no_memory(err, "a zstd compressor");
	n = ZSTD_compressCCtx(c, out, out_cap, in, in_len, zstd_level(p));
	if (!ZSTD_isError(n)) {
		*out_len = n;
		return 0;
	}
	if (ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall)
		return 1;
	return error_set(err,
			 ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation
				 ? -ENOMEM
				 : -EINVAL,
			 "zstd: %s", ZSTD_getErrorName(n));
}

/* The memory that libzstd 1.5 takes: at most so many MiB by level for large chunks, and
 * about 17 times the size of a smaller chunk and 1 MiB. */
static size_t zstd_encode_memory(const struct codec_params *p, size_t size)
{
	static const struct {
		int level;
		unsigned mib;
	} most[] = {{3, 2},   {6, 4},   {8, 7},    {9, 13},  {12, 49},
		    {18, 65}, {19, 82}, {20, 162}, {21, 322}};
	size_t by_size = size / 65536 * (17 * 65536) + ((size_t)2 << 20);
	size_t by_level = (size_t)650 << 20;

	for (unsigned i = 0; i < sizeof most / sizeof *most; i++)
		if (zstd_level(p) <= most[i].level) {
			by_level = (size_t)most[i].mib << 20;
			break;
		}
	return by_size < by_level ? by_size : by_level;
}

const struct codec codec_zstd = {
	.name = "zstd",
	.id = 32015,
	.kind = CODEC_COMPRESS,
	.decode = zstd_decode,
	.encode = zstd_encode,
	.encode_memory = zstd_encode_memory,
};
