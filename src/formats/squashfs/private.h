/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the squashfs reader share; nobody else includes it. */
#ifndef FORMATS_SQUASHFS_PRIVATE_H
#define FORMATS_SQUASHFS_PRIVATE_H

#include "base/bytes.h"
#include "codec/codec.h"
#include "formats/squashfs/squashfs.h"

/* ---- the superblock ------------------------------------------------------ */

#define SQUASHFS_SUPER 96 /* bytes */
/* Where a table is that an image need not have. */
#define SQUASHFS_NO_TABLE UINT64_MAX

struct squashfs_super {
	uint32_t inodes, block_size, fragments;
	uint16_t compressor, block_log, flags, ids;
	uint64_t root, bytes_used;
	uint64_t ids_at, xattrs_at, inodes_at, dirs_at, fragments_at, export_at;
};
/* ---- an image that can be read by descriptor ------------------------------ */

struct squashfs_image {
	int fd;
	uint64_t offset;
	struct handles *handles; /* the file itself: it is pinned here */
	struct handle pin;       /* else `fd` is a copy of the metadata */
};

/* ---- reading it ---------------------------------------------------------- */

/* Told the number of things found so far, now and then, and only when there are
 * more than the last time. */
typedef void squashfs_beat(void *ctx, uint64_t n);
/*
 * Walk the image and add all that is in it.  Calls libsquashfuse: may crash or take
 * for ever, so it belongs in a process of its own.  -EBADMSG, -ENOTSUP, -ENOMEM,
 * -EIO; what is damaged in part is noted.
 */
int squashfs_walk(int fd, uint64_t offset, const struct squashfs_info *info,
		  struct members_builder *b, squashfs_beat *beat, void *ctx,
		  struct error *err);
/* The same in a child, and its table here, checked. */
int squashfs_walk_in_child(const struct squashfs_image *im,
			   const struct squashfs_info *info,
			   const struct members_options *o, struct members *out,
			   squashfs_beat *so_far, void *ctx, struct error *err);

/* ---- decoding blocks ----------------------------------------------------- */

struct squashfs_codec {
	uint16_t id; /* as in the superblock */
	const char *name;
	const struct codec *codec; /* NULL: not in this build */
};
/* NULL: no such compressor. */
const struct squashfs_codec *squashfs_codec(unsigned id);

#endif
