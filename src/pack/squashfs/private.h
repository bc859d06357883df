/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the squashfs writer share; image.c has the essay. */
#ifndef PACK_SQUASHFS_PRIVATE_H
#define PACK_SQUASHFS_PRIVATE_H

#include <sqfs/block.h>
#include <sqfs/compressor.h>
#include <sqfs/dir_writer.h>
#include <sqfs/error.h>
#include <sqfs/frag_table.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/meta_writer.h>
#include <sqfs/super.h>
#include <sqfs/table.h>
#include <sqfs/xattr.h>
#include <sqfs/xattr_writer.h>
#include <stdbool.h>
#include <stdint.h>
#include <xxhash.h>

#include "base/vec.h"
#include "pack/out.h"
#include "pack/sink.h"

#define IMAGE_NONE UINT32_MAX
/* In a size of a block: it is stored as it is. */
#define IMAGE_STORED (UINT32_C(1) << 24)
/* In `sizes`: so many blocks in a row that are all zeros, and nowhere. */
#define IMAGE_HOLES (UINT32_C(1) << 31)

/* ---- pack/squashfs/codec.c: bytes of a block ------------------------------------- */

struct image_codec {
	char name[24]; /* "zstd:9" */
	bool none;     /* nothing is compressed */
	bool choose;   /* what does not get much smaller is stored */
	sqfs_compressor_config_t config;
	struct image_meta {
		sqfs_compressor_t base;  /* for metadata */
		sqfs_compressor_t *with; /* libsquashfs'; NULL: none */
	} meta;
	sqfs_compressor_t *undo; /* NULL: none */
};
/* -EINVAL: squashfs has none of that name or level. */
int image_codec_open(struct image_codec *c, const struct pack_comp *comp,
		     uint32_t block, struct error *err);
void image_codec_close(struct image_codec *c);
/* Bytes of memory that one thread takes beside its blocks; a guess. */
uint64_t image_codec_memory(const struct image_codec *c);
/* What one thread needs to compress. */
struct image_press;
int image_press_new(struct image_press **out, const struct image_codec *c,
		    uint32_t block, struct error *err);
void image_press_free(struct image_press *p);
/* At most n bytes to `out`; *made 0: store them as they are. */
int image_press(struct image_press *p, const void *in, size_t n, void *out,
		size_t *made, struct error *err);
/* Would compressing these save less than a tenth?  Quick. */
bool image_dense(struct image_press *p, const unsigned char *data, size_t n);

/* ---- pack/squashfs/blocks.c: blocks, by all threads, in order -------------------- */

struct image_slot {
	/* Set by who fills it. */
	unsigned char *data;
	uint32_t len;
	uint32_t fragment; /* its number; IMAGE_NONE: a block of a file */
	uint32_t node;     /* whose block it is */
	uint64_t size_at;  /* where in `sizes` its size belongs */
	bool last;         /* of the file; `len` may be 0 then */
	/* Set by who compressed it. */
	unsigned char *packed; /* room; NULL: none is needed */
	size_t packed_len;     /* 0: it is stored as it is */
	struct error err;
	/* Within pack/squashfs/blocks.c. */
	struct image_blocks *of;
	struct image_slot *next;
	bool ready;
};
struct image_blocks;
/* Takes blocks in the order in which they were given, in the thread that gives them. */
typedef int image_done(void *ctx, const struct image_slot *s,
		       struct error *err);
/* *stop: what is not compressed yet fails with -EINTR. */
int image_blocks_new(struct image_blocks **out, const struct image_codec *c,
		     uint32_t block, unsigned threads, uint64_t memory,
		     image_done *done, void *ctx, const _Atomic int *stop,
		     struct error *err);
/* One to be filled; waits for it. */
int image_blocks_get(struct image_blocks *b, struct image_slot **out,
		     struct error *err);
/* Filled: from here on read only, until it is done. */
void image_blocks_put(struct image_blocks *b, struct image_slot *s);
/* A file's only block, in its turn, as it is: copied. */
int image_blocks_store(struct image_blocks *b, const void *data, uint32_t n,
		       uint32_t node, uint64_t size_at, struct error *err);
/* All that was put is done. */
int image_blocks_drain(struct image_blocks *b, struct error *err);
/* The data of a fragment that was put and is not done yet; NULL. */
const unsigned char *image_blocks_find(const struct image_blocks *b,
				       uint32_t fragment);
void image_blocks_free(struct image_blocks *b);

/* ---- the image ------------------------------------------------------------ */

/* An entry, 96 bytes. */
struct image_node {
	uint64_t entry; /* of the scan; UINT64_MAX: the top */
	uint64_t size;
	uint64_t place;  /* of a file's blocks; of a link's target in `text`; a
			    device's number */
	uint64_t blocks; /* of a file: where in `sizes` the first is */
	uint64_t ref;    /* of the inode, when it was written */
	uint32_t fragment, offset; /* where a small file is */
	uint32_t xattr, mtime;
	uint32_t same; /* whose inode it has: its own number, or an earlier */
	uint32_t links, number;
	uint32_t parent, child, next; /* of the tree, when all came */
	uint16_t mode, uid, gid;
	bool written;
};
/* Files by what is in them. */
struct image_same {
	struct image_known {
		uint64_t key;
		uint32_t node; /* IMAGE_NONE: a free place */
	} * at;
	size_t n, room; /* room: 0, or a power of two */
};
struct image_file {
	sqfs_file_t base;
	struct out *out;
	const char *path; /* for sentences */
	struct error err; /* of the first failure */
};
/* What squashfs cannot hold, and was changed. */
struct image_notes {
	uint64_t times, xattrs;
	uint64_t time_entry, xattr_entry; /* the first */
	char xattr[64];
};
struct image {
	struct sink sink;
	struct sink_args a;
	uint32_t block;
	struct image_file file;
	struct image_codec codec;
	struct image_press *probe; /* for `choose` */
	struct image_blocks *blocks;
	sqfs_id_table_t *ids;
	sqfs_frag_table_t *fragments;
	sqfs_xattr_writer_t *xattrs;
	uint32_t n_xattrs;            /* different sets */
	vec(struct image_node) nodes; /* [0]: the top */
	vec(uint32_t) sizes;
	vec(char) text;
	struct {
		uint32_t id;
		uint16_t index;
		bool known;
	} id_cache[256];
	uint32_t newest; /* time */
	bool options;    /* of the compressor follow the superblock */
	/* The file that comes. */
	uint32_t node;
	uint64_t noted; /* blocks that are in `sizes` */
	struct image_slot *filling;
	/* The block of small files that is filled, and its number. */
	struct image_slot *small;
	uint32_t small_number;
	/* The file that goes out, and what its blocks hash to. */
	XXH3_state_t *hash;
	uint64_t begun; /* where its first block is; UINT64_MAX: none yet */
	struct image_same same;
	unsigned char *back; /* a block of small files, read back */
	unsigned char *back_raw;
	uint32_t back_number;
	struct image_notes notes;
};
/* A sentence for what libsquashfs, or our file below it, says. */
int image_failed(struct image *im, int sqfs, const char *what,
		 struct error *err);
const char *image_path(const struct image *im, const struct image_node *n);
static inline uint64_t image_n_blocks(const struct image *im,
				      const struct image_node *n)
{
	return n->fragment == IMAGE_NONE
		       ? n->size / im->block + (n->size % im->block != 0)
		       : 0;
}

/* The sizes of its blocks, one after the other. */
struct image_walk {
	uint64_t at;    /* in `sizes` */
	uint32_t holes; /* that are left of a row */
};
static inline uint32_t image_next(const struct image *im, struct image_walk *w)
{
	uint32_t v = w->holes ? w->holes | IMAGE_HOLES : im->sizes.at[w->at++];

	w->holes = v & IMAGE_HOLES ? (v & ~IMAGE_HOLES) - 1 : 0;
	return v & IMAGE_HOLES ? 0 : v;
}

/* pack/squashfs/image.c */
int image_append(struct image *im, const void *data, size_t n,
		 struct error *err);

/* pack/squashfs/data.c */
int image_data_open(struct image *im, struct error *err);
/* Bytes of the file im->node; NULL: zeros. */
int image_data_small(struct image *im, const void *data, size_t n,
		     struct error *err);
int image_data_add(struct image *im, const void *data, uint64_t n, bool last,
		   struct error *err);
/* A small file with these bytes is there: 1, and n's fragment is set. */
int image_same_small(struct image *im, struct image_node *n, const void *data,
		     uint64_t key, struct error *err);
/* The blocks of this file are in the image a second time: 1, and they are taken back. */
int image_same_blocks(struct image *im, struct image_node *n, uint64_t key,
		      struct error *err);
int image_data_finish(struct image *im, struct error *err);
void image_data_close(struct image *im);

/* ---- everything behind the data ------------------------------------------- */

int image_tree_write(struct image *im, struct error *err);

#endif
