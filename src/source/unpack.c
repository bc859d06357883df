/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed pieces of columnar files: decoded whole. */
#include "source/unpack.h"

#include <errno.h>
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

static int lz4_frame(const unsigned char *in, size_t n, unsigned char *out,
		     size_t size, size_t *got)
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

int unpack(enum unpack how, const void *in, size_t n, void *out, size_t size,
	   struct error *err)
{
	static const char *const names[] = {"plain", "lz4", "zstd"};
	size_t got = n;
	int r = 0;

	if (how == UNPACK_ZSTD) {
		got = ZSTD_decompress(out, size, in, n);
		r = ZSTD_isError(got) ? -EBADMSG : 0;
	} else if (how == UNPACK_LZ4_FRAME) {
		r = lz4_frame(in, n, out, size, &got);
	} else if (n == size) {
		memcpy(out, in, n);
	}
	if (r == -ENOMEM)
		return error_set(err, r, "out of memory");
	if (r < 0)
		return error_set(err, r, "its %s data do not decode",
				 names[how]);
	return got == size
		       ? 0
		       : error_set(err, -EBADMSG,
				   "its %s data are %zu bytes instead of %zu",
				   names[how], got, size);
}
