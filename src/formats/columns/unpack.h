/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed pieces of columnar files: decoded whole. */
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
/* False: not built in (snappy). */
bool unpack_known(enum unpack how);
/* Exactly `size` bytes come of the `n`.  -EBADMSG, -ENOMEM. */
int unpack(enum unpack how, const void *in, size_t n, void *out, size_t size,
	   struct error *err);

#endif
