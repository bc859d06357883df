/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of the squashfs reader; other folders must not
 * include them. */
#ifndef FORMATS_SQUASHFS_PRIVATE_H
#define FORMATS_SQUASHFS_PRIVATE_H

#include "base/bytes.h"
#include "codec/codec.h"
#include "formats/squashfs/squashfs.h"

/* ---- the superblock ------------------------------------------------------ */

#define SQUASHFS_SUPER 96 /* bytes */
/* The position of a table that the image does not have. */
#define SQUASHFS_NO_TABLE UINT64_MAX

struct squashfs_super {
	uint32_t inodes, block_size, fragments;
	uint16_t compressor, block_log, flags, ids;
	uint64_t root, bytes_used;
	uint64_t ids_at, xattrs_at, inodes_at, dirs_at, fragments_at, export_at;
};
/* Parse the SQUASHFS_SUPER bytes at `raw`.  Return 0, -EBADMSG if it is not squashfs
 * or damaged, or -ENOTSUP if it is not version 4.0. */
int squashfs_super_parse(struct squashfs_super *out, const unsigned char *raw,
			 struct error *err);
/* Set *out to the fields that are saved.  squashfs_info_check says whether they are
 * possible. */
void squashfs_super_info(const struct squashfs_super *s,
			 struct squashfs_info *out);
/* ---- an image with a file descriptor -------------------------------------- */

struct squashfs_image {
	/* The descriptor to read from, and where in it the image begins, in bytes. */
	int fd;
	uint64_t offset;
	struct handles *handles; /* NULL: `fd` is a memory file */
	struct handle pin;       /* holds `fd` open if `handles` is not NULL */
};

/* ---- reading an image ---------------------------------------------------- */

/* Called from time to time with the number of members found so far, each time with
 * a larger number than before. */
typedef void squashfs_beat(void *ctx, uint64_t n);
/*
 * Walk the image and add all its members to `b`.  This calls libsquashfuse, which
 * may crash or never return, so it must run in a process of its own.  Return 0,
 * -EBADMSG, -ENOTSUP, -ENOMEM or -EIO.  Members that are damaged are notes in the
 * table, not errors.
 */
int squashfs_walk(int fd, uint64_t offset, const struct squashfs_info *info,
		  struct members_builder *b, squashfs_beat *beat, void *ctx,
		  struct error *err);
/* Call squashfs_walk in a child process and check the table that comes back.  The
 * table is stored in *out, which the caller frees.  Blocks until the child has
 * ended.  Return as squashfs_walk does. */
int squashfs_walk_in_child(const struct squashfs_image *im,
			   const struct squashfs_info *info,
			   const struct members_options *o, struct members *out,
			   squashfs_beat *so_far, void *ctx, struct error *err);

/* ---- decoding blocks ----------------------------------------------------- */

struct squashfs_codec {
	uint16_t id; /* as in the superblock */
	const char *name;
	const struct codec *codec; /* NULL: this build has none */
};
/* Return the decoder for number `id` of a superblock, or NULL if there is no such
 * compressor. */
const struct squashfs_codec *squashfs_codec(unsigned id);
/* Decode the stored bytes of a compressed block to `out`.  *made is b->size, or,
 * with MEMBER_SHARED, from b->size to `room`, which is one block.  Return 0,
 * -EBADMSG, -ENOTSUP or -ENOMEM. */
int squashfs_block_decode(const struct squashfs_info *info,
			  const struct member_block *b, const void *stored,
			  void *out, size_t room, size_t *made,
			  struct error *err);

#endif
