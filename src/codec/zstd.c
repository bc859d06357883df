/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32015, zstd: one or more Zstandard frames. */
/*
 * Frames are decoded one by one, each only after its magic number was seen:
 * libzstd is often built with the decoders of the formats before 1.0 too,
 * which no HDF5 file holds and no hostile one shall reach.  The content size
 * in a frame's header is never used to allocate anything.
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

static int is_frame(const unsigned char *in, size_t in_len)
{
	uint32_t magic;

	if (in_len < 4)
		return 0;
	magic = load_le32(in);
	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) ==
		       ZSTD_MAGIC_SKIPPABLE_START;
}

static int fail(size_t code, size_t room, struct error *err)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_dstSize_tooSmall:
		return error_set(err, -ENOSPC,
				 "zstd: the frames decode to more than the "
				 "%zu bytes left",
				 room);
	case ZSTD_error_memory_allocation:
		return error_set(err, -ENOMEM, "zstd: no memory for decoding");
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
		return error_set(err, -ENOMEM, "zstd: no memory for decoding");
	do {
		size_t frame, n;

		if (!is_frame(from, in_len))
			return error_set(err, -EBADMSG,
					 "zstd: %zu of the stored bytes are "
					 "not a Zstandard frame",
					 in_len);
		frame = ZSTD_findFrameCompressedSize(from, in_len);
		if (ZSTD_isError(frame))
			return fail(frame, out_cap - made, err);
		n = ZSTD_decompressDCtx(d, to + made, out_cap - made, from,
					frame);
		if (ZSTD_isError(n))
			return fail(n, out_cap - made, err);
		made += n;
		from += frame;
		in_len -= frame;
	} while (in_len);
	*out_len = made;
	return 0;
}

const struct codec codec_zstd = {
	.name = "zstd",
	.id = 32015,
	.kind = CODEC_COMPRESS,
	.decode = zstd_decode,
};
