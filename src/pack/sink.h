/* SPDX-License-Identifier: BSD-2-Clause */
/* What a format is when it is written: the mirror image of a source. */
#ifndef PACK_SINK_H
#define PACK_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pack/feed.h"
#include "pack/scan.h"

/* --comp=NAME[:LEVEL] */
struct pack_comp {
	enum pack_codec {
		PACK_AUTO, /* the format's, and only where it pays */
		PACK_NONE,
		PACK_GZIP, /* deflate, in HDF5 */
		PACK_ZSTD,
		PACK_LZ4,
		PACK_XZ,
		PACK_LZF
	} codec;
	int level; /* 0: the codec's usual one */
};
struct sink_args {
	const char *path; /* of the output, as the user gave it */
	bool replace;     /* what is there (--force) */
	struct pack_comp comp;
	uint64_t block;   /* bytes of a block (--block-size); 0: the format's */
	unsigned threads; /* that compress: >= 1 */
	uint64_t memory;  /* bytes that it may use for buffers */
	const struct scan *scan; /* what will come */
	struct feed_attr top;    /* of the directory itself */
	enum { PACK_INDEX_BESIDE, PACK_INDEX_NONE } index; /* of a tar */
	bool numeric_owner; /* no names of users and groups */
	int64_t epoch;      /* SOURCE_DATE_EPOCH; INT64_MIN: none */
	/* HDF5 only */
	const char *chunk, *shape, *dtype, *labels, *dataset;
	const _Atomic int *stop;
	/* All of it is synced, and has no name yet: < 0 leaves things as they were.
	 * `xxh3` as sink_result has it, `path` for sentences.  May be NULL. */
	int (*check)(void *ctx, const char *path, int fd,
		     const uint64_t xxh3[2], struct error *err);
	void *check_ctx;
	/* What the user should know though it is no failure, a sentence; may be NULL. */
	void (*note)(void *ctx, const char *sentence);
	void *note_ctx;
};
struct sink_result {
	uint64_t stored; /* bytes of the output */
	uint64_t xxh3
		[2]; /* of all of them (XXH3-128: high, low); 0: not asked */
	/* Static, or the sink's: */
	const char *codec; /* what was chosen, "zstd:3" */
	const char
		*index; /* where the index of a tar is; NULL: there is none */
	const char *warning; /* the file is whole, but this failed: a sentence
				without its path; NULL: nothing */
};
struct sink;
struct sink_ops {
	const char *name, *summary;
	const char *suffixes; /* ".tar.zst .tzst" */
	/* It has no links: each name of an inode comes with all its bytes
	 * (scan_entry.same_as is its own number everywhere). */
	bool no_links;
	bool sockets; /* it stores sockets, too */
	bool tensors; /* its contents are one data set: options of tensors apply */
	bool shards; /* a part of the input makes a whole file: --shard-size applies */
	/* -EINVAL with a sentence: an option that this format cannot do.  `scan` and
	 * `top` are not known yet; `open` asks it, too. */
	int (*check)(const struct sink_args *a, struct error *err);
	int (*open)(const struct sink_args *a, struct sink **out,
		    struct error *err);
	/* The next unit of a feed. */
	int (*put)(struct sink *s, const struct feed_unit *u,
		   struct error *err);
	/* Everything came: write the rest, sync, give it its name.  0: it is there,
	 * else nothing has changed.  `s` stays readable until close. */
	int (*finish)(struct sink *s, struct sink_result *r, struct error *err);
	/* Remove what is not finished. */
	void (*close)(struct sink *s);
};
struct sink {
	const struct sink_ops *ops;
};
/* The end of a finish: sync, stop if that is wanted, check, give the file its name. */
struct out;
int sink_publish(const struct sink_args *a, struct out *o,
		 const uint64_t xxh3[2], struct error *err);
/* Rows end with NULL. */
extern const struct sink_ops *const sink_table[];
extern const struct sink_ops sink_tar, sink_tar_gzip, sink_tar_zstd,
	sink_squashfs, sink_hdf5;
/* By --format's word, or (format NULL) by the suffix of `path`.  NULL: none. */
const struct sink_ops *sink_find(const char *format, const char *path);

#endif
