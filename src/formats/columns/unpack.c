/* SPDX-License-Identifier: BSD-2-Clause */
/* Decode a compressed piece of a columnar file at once. */
#include "formats/columns/unpack.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

#include "config.h"

#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#endif

static int unpack_lz4_frame(const unsigned char *in, size_t n,
			    unsigned char *out, size_t size, size_t *got)
{
	LZ4F_dctx *d;
	size_t left = 1, taken = 0;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
		return -ENOMEM;
	*got = 0;
	while (left && !LZ4F_isError(left)) {
		size_t to = size - *got, from = n - taken;

		left = LZ4F_decompress(d, out + *got, &to, in + taken, &from,
				       NULL);
		*got += to;
		taken += from;
		if (!to && !from)
			break;
	}
	LZ4F_freeDecompressionContext(d);
	return left || taken != n ? -EBADMSG : 0;
}

static int unpack_lz4_block(const void *in, size_t n, void *out, size_t size,
			    size_t *got)
{
	int r;

	if (n > INT_MAX || size > INT_MAX)
		return -EBADMSG;
	r = LZ4_decompress_safe(in, out, (int)n, (int)size);
	*got = r < 0 ? 0 : (size_t)r;
	return r < 0 ? -EBADMSG : 0;
}

static int unpack_gzip(const void *in, size_t n, void *out, size_t size,
		       size_t *got)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	const unsigned char *at = in;
	enum libdeflate_result r = LIBDEFLATE_SUCCESS;

	if (!d)
		return -ENOMEM;
	*got = 0;
	while (n && r == LIBDEFLATE_SUCCESS) { /* one member after the other */
		size_t taken, some;

		r = libdeflate_gzip_decompress_ex(d, at, n, (char *)out + *got,
						  size - *got, &taken, &some);
		if (r == LIBDEFLATE_SUCCESS) {
			at += taken;
			n -= taken;
			*got += some;
		}
	}
	libdeflate_free_decompressor(d);
	return r == LIBDEFLATE_SUCCESS ? 0 : -EBADMSG;
}

static int unpack_snappy(const void *in, size_t n, void *out, size_t size,
			 size_t *got)
{
#ifdef HAVE_SNAPPY
	*got = size;
	return snappy_uncompress(in, n, out, got) == SNAPPY_OK ? 0 : -EBADMSG;
#else
	(void)in;
	(void)n;
	(void)out;
	(void)size;
	*got = 0;
	return -ENOTSUP;
#endif
}

bool unpack_known(enum unpack how)
{
#ifndef HAVE_SNAPPY
	if (how == UNPACK_SNAPPY)
		return false;
#endif
	return how < UNPACK_UNKNOWN;
}

static int unpack_with(enum unpack how, const void *in, size_t n, void *out,
		       size_t size, size_t *got)
{
	switch (how) {
	case UNPACK_NOTHING:
		*got = n;
		if (n == size)
			memcpy(out, in, n);
		return 0;
	case UNPACK_LZ4_FRAME:
		return unpack_lz4_frame(in, n, out, size, got);
	case UNPACK_ZSTD:
		*got = ZSTD_decompress(out, size, in, n);
		return ZSTD_isError(*got) ? -EBADMSG : 0;
	case UNPACK_LZ4_BLOCK:
		return unpack_lz4_block(in, n, out, size, got);
	case UNPACK_SNAPPY:
		return unpack_snappy(in, n, out, size, got);
	case UNPACK_GZIP:
		return unpack_gzip(in, n, out, size, got);
	default:
		return -ENOTSUP;
	}
}

int unpack(enum unpack how, const void *in, size_t n, void *out, size_t size,
	   struct error *err)
{
	static const char *const names[] = {
		[UNPACK_NOTHING] = "plain",  [UNPACK_LZ4_FRAME] = "lz4",
		[UNPACK_ZSTD] = "zstd",      [UNPACK_LZ4_BLOCK] = "lz4",
		[UNPACK_SNAPPY] = "snappy",  [UNPACK_GZIP] = "gzip",
		[UNPACK_UNKNOWN] = "unknown"};
	size_t got = 0;
	/* Writers leave out the bytes of a page whose values are all null. */
	int r = n || size ? unpack_with(how, in, n, out, size, &got) : 0;

	if (r == -ENOMEM)
		return error_no_memory(err, "the decoder");
	if (r < 0)
		return error_set(err, r,
				 "its %s data cannot be decoded: damaged",
				 names[how]);
	return got == size ? 0
			   : error_set(err, -EBADMSG,
				       "its %s data decode to %zu bytes "
				       "instead of %zu",
				       names[how], got, size);
}
