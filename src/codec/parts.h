/* SPDX-License-Identifier: BSD-2-Clause */
/* Decode a very large chunk in parts, for formats that are made of blocks. */
#ifndef CODEC_PARTS_H
#define CODEC_PARTS_H

#include <stddef.h>

#include "base/error.h"

/* A chunk of fewer decoded bytes is not cut into parts. */
#define PARTS_LEAST ((size_t)2 << 20)
/* A part has at least this many decoded bytes. */
#define PART_LEAST ((size_t)512 << 10)

/* A part: consecutive blocks of a chunk. */
struct part {
	const unsigned char *in; /* the stored bytes of the blocks */
	size_t in_len;
	size_t from, to; /* decoded bytes of the chunk: [from, to) */
};
/* Decode a part; several parts are decoded at once.  Return 0, or -errno with a
 * sentence. */
typedef int part_fn(void *ctx, const struct part *p, struct error *err);

/* How many blocks of `block` decoded bytes a part should have, in a chunk of `total`
 * decoded bytes: all of them if the chunk is not worth cutting, or there are no helper
 * threads. */
size_t parts_blocks(size_t total, size_t block);
/*
 * Decode `total` bytes, in parts on a team of threads.  The stored blocks have their
 * stored size in front (u32, big-endian) and decode to `block` bytes each, the last one
 * to fewer.  Bytes behind the last block belong to the last part.  Where the sizes lead
 * out of `in`, one part gets all the rest and has to report the damage.  Return 0,
 * -ENOMEM, or the error of the first part that failed.
 */
int parts_of_blocks(const unsigned char *in, size_t in_len, size_t total,
		    size_t block, part_fn *fn, void *ctx, struct error *err);

#endif
