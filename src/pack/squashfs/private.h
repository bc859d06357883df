/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the squashfs writer share; image.c has the essay. */
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
/* Flag in the size of a block: it is stored uncompressed. */
#define IMAGE_STORED (UINT32_C(1) << 24)
/* Flag in an element of `sizes`: the rest of it counts consecutive blocks of zeros, which
 * are not stored. */
#define IMAGE_HOLES (UINT32_C(1) << 31)

/* ---- pack/squashfs/codec.c: bytes of a block --------------------------------- */

struct image_codec {
	char name[24]; /* "zstd:9" */
	bool none;     /* nothing is compressed */
	bool choose;   /* store blocks that hardly shrink */
	sqfs_compressor_config_t config;
	struct image_meta {
		sqfs_compressor_t base;  /* the wrapper for metadata */
		sqfs_compressor_t *with; /* libsquashfs' own, or NULL */
	} meta;
	sqfs_compressor_t *undo; /* decompressor; NULL: none */
};
/* Return 0, or -EINVAL if squashfs does not have that codec or level.  Closed with
 * image_codec_close, also after a failure. */
int image_codec_open(struct image_codec *c, const struct pack_comp *comp,
		     uint32_t block, struct error *err);
void image_codec_close(struct image_codec *c);
/* Estimated bytes of memory of one thread, without its blocks. */
uint64_t image_codec_memory(const struct image_codec *c);
/* State of a thread that compresses. */
struct image_press;
int image_press_new(struct image_press **out, const struct image_codec *c,
		    uint32_t block, struct error *err);
/* `p` may be NULL. */
void image_press_free(struct image_press *p);
/* Compress `n` bytes to `out`, which has room for `n`.  Set *made to the number of bytes,
 * or to 0 if they are to be stored. */
int image_press(struct image_press *p, const void *in, size_t n, void *out,
		size_t *made, struct error *err);
/* Would compression save less than a tenth?  Much faster than compressing. */
bool image_dense(struct image_press *p, const unsigned char *data, size_t n);

/* ---- pack/squashfs/blocks.c: blocks, by all threads, in order ---------------------- */

struct image_slot {
	/* Set by the caller, who fills it: */
	unsigned char *data;
	uint32_t len;
	/* Number of the fragment; IMAGE_NONE: a block of a file. */
	uint32_t fragment;
	uint32_t node;    /* the node of the file that it belongs to */
	uint64_t size_at; /* index in image.sizes for its stored size */
	bool last;        /* last block of the file; `len` may be 0 then */
	/* Set by the thread that compressed it: */
	unsigned char *packed; /* room for the result; NULL: not needed */
	size_t packed_len;     /* bytes; 0: store it uncompressed */
	struct error err;
	/* Private to pack/squashfs/blocks.c: */
	struct image_blocks *of;
	struct image_slot *next;
	bool ready;
};
struct image_blocks;
/* Called for each block in the order in which they were given, by the thread that gives
 * them. */
typedef int image_done(void *ctx, const struct image_slot *s,
		       struct error *err);
/* Start threads.  When *stop is set, blocks that are not compressed yet fail with
 * -EINTR. */
int image_blocks_new(struct image_blocks **out, const struct image_codec *c,
		     uint32_t block, unsigned threads, uint64_t memory,
		     image_done *done, void *ctx, const _Atomic int *stop,
		     struct error *err);
/* Get a slot to fill, waiting for one if necessary.  May call `done`, and return its
 * errors. */
int image_blocks_get(struct image_blocks *b, struct image_slot **out,
		     struct error *err);
/* Queue a filled slot, which is read-only from here until `done` was called for it. */
void image_blocks_put(struct image_blocks *b, struct image_slot *s);
/* Queue the only block of a file to be stored uncompressed.  The data is copied. */
int image_blocks_store(struct image_blocks *b, const void *data, uint32_t n,
		       uint32_t node, uint64_t size_at, struct error *err);
/* Wait until `done` was called for all that was queued. */
int image_blocks_drain(struct image_blocks *b, struct error *err);
/* The data of a fragment that is still queued, or NULL. */
const unsigned char *image_blocks_find(const struct image_blocks *b,
				       uint32_t fragment);
/* End the threads and free `b`, which may be NULL; queued blocks are dropped. */
void image_blocks_free(struct image_blocks *b);

/* ---- the image ------------------------------------------------------------ */

/* An entry of the image, 96 bytes. */
struct image_node {
	uint64_t entry; /* number in the scan; UINT64_MAX: the top */
	uint64_t size;
	/* Files: position of the first block; symbolic links: index of the target in
	 * `text`; devices: the number. */
	uint64_t place;
	uint64_t blocks; /* files: index in `sizes` of the first block */
	uint64_t ref;    /* reference to the inode, once it was written */
	/* Small files: the shared block, and the offset in it. */
	uint32_t fragment, offset;
	uint32_t xattr, mtime;
	/* The node whose inode it has: itself, or an earlier one. */
	uint32_t same;
	uint32_t links, number;
	uint32_t parent, child, next; /* the tree of entries */
	uint16_t mode, uid, gid;
	bool written;
};
/* Hash table of files by contents. */
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
	struct error err; /* the first failure */
};
/* What was changed or left out because squashfs cannot hold it. */
struct image_notes {
	uint64_t times, xattrs;
	uint64_t time_entry, xattr_entry; /* the first entries of each kind */
	char xattr[64];
};
struct image {
	struct sink sink;
	struct sink_args a;
	uint32_t block;
	struct image_file file;
	struct image_codec codec;
	struct image_press *probe; /* for codec.choose */
	struct image_blocks *blocks;
	sqfs_id_table_t *ids;
	sqfs_frag_table_t *fragments;
	sqfs_xattr_writer_t *xattrs;
	uint32_t n_xattrs;            /* number of distinct sets */
	vec(struct image_node) nodes; /* [0]: the top */
	vec(uint32_t) sizes;
	vec(char) text;
	struct {
		uint32_t id;
		uint16_t index;
		bool known;
	} id_cache[256];
	uint32_t newest; /* latest time of change of all entries */
	bool options;    /* options of the compressor follow the superblock */
	/* The file that is coming in: */
	uint32_t node;
	uint64_t noted; /* blocks of it that are in `sizes` */
	struct image_slot *filling;
	/* The shared block of small files that is being filled, and its number. */
	struct image_slot *small;
	uint32_t small_number;
	/* The file whose blocks are being written, and the hash of these. */
	XXH3_state_t *hash;
	uint64_t begun; /* position of its first block; UINT64_MAX: none yet */
	struct image_same same;
	unsigned char *back; /* a shared block, read back */
	unsigned char *back_raw;
	uint32_t back_number;
	struct image_notes notes;
};
/* Set `err` for an error code of libsquashfs, or of the file below it if that failed.
 * `what` is what could not be made. */
int image_failed(struct image *im, int sqfs, const char *what,
		 struct error *err);
/* The path of an entry; "": the top. */
const char *image_path(const struct image *im, const struct image_node *n);
static inline uint64_t image_n_blocks(const struct image *im,
				      const struct image_node *n)
{
	return n->fragment == IMAGE_NONE
		       ? n->size / im->block + (n->size % im->block != 0)
		       : 0;
}

/* Iterates over the sizes of a file's blocks. */
struct image_walk {
	uint64_t at;    /* next index in `sizes` */
	uint32_t holes; /* blocks of zeros that are left of a run */
};
static inline uint32_t image_next(const struct image *im, struct image_walk *w)
{
	uint32_t v = w->holes ? w->holes | IMAGE_HOLES : im->sizes.at[w->at++];

	w->holes = v & IMAGE_HOLES ? (v & ~IMAGE_HOLES) - 1 : 0;
	return v & IMAGE_HOLES ? 0 : v;
}

/* pack/squashfs/image.c: append to the image. */
int image_append(struct image *im, const void *data, size_t n,
		 struct error *err);

/* ---- pack/squashfs/data.c: the contents of files --------------------------- */

/* Start the threads that compress, before any file. */
int image_data_open(struct image *im, struct error *err);
/* Add contents of the file im->node; `data` NULL: zeros.  image_data_small: a whole file
 * of less than a block. */
int image_data_small(struct image *im, const void *data, size_t n,
		     struct error *err);
int image_data_add(struct image *im, const void *data, uint64_t n, bool last,
		   struct error *err);
/* Return 1, and set n's fragment, if there is a small file with these bytes; 0 if there
 * is none; -errno. */
int image_same_small(struct image *im, struct image_node *n, const void *data,
		     uint64_t key, struct error *err);
/* Return 1, and remove the blocks of this file from the end of the image, if another file
 * has the same blocks; 0 if none has; -errno. */
int image_same_blocks(struct image *im, struct image_node *n, uint64_t key,
		      struct error *err);
/* All files came: wait until all blocks are in the image. */
int image_data_finish(struct image *im, struct error *err);
/* End the threads; may be called after a failure of image_data_open. */
void image_data_close(struct image *im);

/* ---- pack/squashfs/tree.c: everything behind the data
 * ------------------------------- */

/* Write it, once all files are in the image. */
int image_tree_write(struct image *im, struct error *err);

#endif
