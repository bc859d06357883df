/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: a very large chunk in parts, for formats that are made of blocks. */
#ifndef CODEC_PARTS_H
#define CODEC_PARTS_H

#include <stddef.h>

#include "base/error.h"

/* Chunks of fewer decoded bytes are not cut, ... */
#define PARTS_LEAST ((size_t)2 << 20)
/* ... and parts have so many at least. */
#define PART_LEAST ((size_t)512 << 10)

/* Some blocks that follow each other. */
struct part {
	const unsigned char
		*in; /* stored bytes: where the first begins, and how many */
	size_t in_len;
	size_t from, to; /* decoded bytes: [from, to) of the chunk's */
};
/* Decode a part; several at once.  0 or -errno with a sentence. */
typedef int part_fn(void *ctx, const struct part *p, struct error *err);

/* How many blocks of `block` decoded bytes a part should have, in a chunk of `total`: all
 * where it is not worth cutting, or nobody is there to help. */
size_t parts_blocks(size_t total, size_t block);
/*
 * Decode `total` bytes, from blocks that have their stored size in front (u32, big-endian)
 * and decode to `block` bytes each, the last one to fewer: in parts, on a team.  What is
 * behind the last block belongs to the last part.  Where the sizes lead out of `in`, one
 * part has the rest: it is to find out.  -ENOMEM, or what the first part that failed says.
 */
int parts_of_blocks(const unsigned char *in, size_t in_len, size_t total,
		    size_t block, part_fn *fn, void *ctx, struct error *err);

#endif
