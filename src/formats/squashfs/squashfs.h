/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: from an image to a member table and a set of blocks. */
#ifndef FORMATS_SQUASHFS_SQUASHFS_H
#define FORMATS_SQUASHFS_SQUASHFS_H

#include "extent/chunk.h"
#include "members/members.h"

#define SQUASHFS_MAKER "squashfs 3"

/* 0 to 100 from the first bytes. */
int squashfs_probe(const unsigned char *head, size_t n);

/* What of the superblock is needed later; kept in the index. */
struct squashfs_info {
	uint64_t bytes_used; /* of the image */
	uint32_t block_size;
	uint32_t inodes, fragments;
	uint16_t
		compressor; /* as in the superblock: 1 gzip, 3 lzo, 4 xz, 5 lz4,
				6 zstd */
	uint16_t flags;
	uint32_t unused; /* 0 */
};
/* From an index: are these numbers possible? */
int squashfs_info_check(const struct squashfs_info *info,
			const struct backing *b, struct error *err);
/*
 * The member table, whose metadata libsquashfuse reads in a process of its own:
 * it believes what it reads.  `so_far` (may be NULL) is called now and then with
 * the number of members.  -EBADMSG: damaged; -ENOTSUP: another version, a
 * compressor that is not there; -ENOMEM.
 */
int squashfs_members(const struct backing *b, const struct members_options *o,
		     struct members *out, struct squashfs_info *info,
		     void (*so_far)(void *ctx, uint64_t n), void *ctx,
		     struct error *err);
/* The blocks of a table as a chunk set: chunk i is m->blocks[i].  Borrows `m`; `b`
 * is copied.  Freed by squashfs_blocks_free. */
int squashfs_blocks_new(struct chunk_set **out, const struct members *m,
			const struct backing *b,
			const struct squashfs_info *info, struct error *err);
void squashfs_blocks_free(struct chunk_set *s);
/* What decodes its blocks; NULL: nothing that was built in. */
const struct codec *squashfs_block_codec(const struct squashfs_info *info);
const char *squashfs_compressor_name(unsigned compressor);

#endif
