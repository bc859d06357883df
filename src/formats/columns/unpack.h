/* SPDX-License-Identifier: BSD-2-Clause */
/* Decode a compressed piece of a columnar file at once. */
#ifndef FORMATS_COLUMNS_UNPACK_H
#define FORMATS_COLUMNS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum unpack {
	UNPACK_NOTHING,
	UNPACK_LZ4_FRAME,
	UNPACK_ZSTD,
	UNPACK_LZ4_BLOCK,
	UNPACK_SNAPPY,
	UNPACK_GZIP,
	UNPACK_UNKNOWN
};
/* Return false if this build cannot decode it (snappy). */
bool unpack_known(enum unpack how);
/* Decode the `n` bytes of `in` to exactly `size` bytes.  Return 0, -EBADMSG,
 * -ENOTSUP or -ENOMEM. */
int unpack(enum unpack how, const void *in, size_t n, void *out, size_t size,
	   struct error *err);

#endif
