/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: make a member table and a set of blocks from an image. */
#ifndef FORMATS_SQUASHFS_SQUASHFS_H
#define FORMATS_SQUASHFS_SQUASHFS_H

#include "extent/chunk.h"
#include "members/members.h"

#define SQUASHFS_MAKER "squashfs 3"

/* Return how certain it is, from 0 to 100, that a file that begins with these bytes
 * is squashfs. */
int squashfs_probe(const unsigned char *head, size_t n);

/* The fields of the superblock that are needed after the scan; saved in the index
 * as they are. */
struct squashfs_info {
	uint64_t bytes_used; /* size of the image */
	uint32_t block_size;
	uint32_t inodes, fragments;
	uint16_t compressor; /* 1 gzip, 3 lzo, 4 xz, 5 lz4, 6 zstd */
	uint16_t flags;
	uint32_t unused; /* 0 */
};
/* Check numbers that may come from an index against the source.  Return 0, -EBADMSG
 * or -ENOTSUP. */
int squashfs_info_check(const struct squashfs_info *info,
			const struct backing *b, struct error *err);
/*
 * Read the member table of an image into *out (freed by the caller with
 * members_free) and *info.  A child process reads the metadata with libsquashfuse,
 * because that library trusts them.  Blocks until it is done.  `so_far` (may be
 * NULL) is called from time to time with the number of members.  Return 0, -EBADMSG
 * if the image is damaged, -ENOTSUP for another version of squashfs or a compressor
 * that this build does not have, -ENOMEM, or an error of the source.
 */
int squashfs_members(const struct backing *b, const struct members_options *o,
		     struct members *out, struct squashfs_info *info,
		     void (*so_far)(void *ctx, uint64_t n), void *ctx,
		     struct error *err);
/* Make a set of chunks of the blocks of a table: chunk i is m->blocks[i].  `m` is
 * borrowed and must outlive the set, `b` is copied.  The caller frees the set with
 * squashfs_blocks_free. */
int squashfs_blocks_new(struct chunk_set **out, const struct members *m,
			const struct backing *b,
			const struct squashfs_info *info, struct error *err);
void squashfs_blocks_free(struct chunk_set *s);
/* Return the decoder of the image's blocks, or NULL if this build has none. */
const struct codec *squashfs_block_codec(const struct squashfs_info *info);
const char *squashfs_compressor_name(unsigned compressor);

#endif
