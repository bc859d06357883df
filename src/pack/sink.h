/* SPDX-License-Identifier: BSD-2-Clause */
/* A format that can be written: the counterpart of a source. */
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
		/* The format's usual codec, and only where it saves space. */
		PACK_AUTO,
		PACK_NONE,
		PACK_GZIP, /* deflate, in HDF5 */
		PACK_ZSTD,
		PACK_LZ4,
		PACK_XZ,
		PACK_LZF
	} codec;
	int level; /* 0: the codec's default */
};
struct sink_args {
	const char *path; /* path of the output, as the user gave it */
	bool replace;     /* replace an existing file (--force) */
	struct pack_comp comp;
	/* Bytes of a block (--block-size); 0: the format's default. */
	uint64_t block;
	unsigned threads;        /* threads that compress: >= 1 */
	uint64_t memory;         /* bytes of memory for buffers */
	const struct scan *scan; /* the entries that will come */
	struct feed_attr top;    /* attributes of the directory itself */
	enum { PACK_INDEX_BESIDE, PACK_INDEX_NONE } index; /* for tars */
	bool numeric_owner; /* do not store names of users and groups */
	int64_t epoch;      /* SOURCE_DATE_EPOCH; INT64_MIN: not set */
	/* HDF5 only */
	const char *chunk, *shape, *dtype, *labels, *dataset;
	const _Atomic int *stop;
	/* Called when the output is synced and has no name yet; a negative result leaves
	 * everything as it was.  `xxh3` is as in sink_result, `path` is for sentences.
	 * May be NULL. */
	int (*check)(void *ctx, const char *path, int fd,
		     const uint64_t xxh3[2], struct error *err);
	void *check_ctx;
	/* Called with a sentence that the user should read although nothing failed.  May
	 * be NULL. */
	void (*note)(void *ctx, const char *sentence);
	void *note_ctx;
};
struct sink_result {
	uint64_t stored; /* bytes of the output */
	uint64_t xxh3
		/* Hash of the output (XXH3-128: high, low); 0: not computed. */
		[2];
	/* Strings are static or belong to the sink. */
	const char *codec; /* codec that was used, "zstd:3" */
	const char *index; /* path of a tar's index; NULL: no index was made */
	/* A sentence: what failed although the output is complete; NULL: nothing. */
	const char *warning;
};
struct sink;
struct sink_ops {
	const char *name, *summary;
	const char *suffixes; /* ".tar.zst .tzst" */
	/* The format has no hard links: each name of an inode comes with all bytes, and
	 * scan_entry.same_as is the entry's own number everywhere. */
	bool no_links;
	bool sockets; /* it stores sockets, too */
	bool tensors; /* its contents are one data set: options of tensors apply */
	bool shards; /* a part of the input makes a whole file: --shard-size applies */
	/* Return -EINVAL with a sentence if this format does not support an option.
	 * `scan` and `top` are not set yet.  `open` makes the same checks. */
	int (*check)(const struct sink_args *a, struct error *err);
	int (*open)(const struct sink_args *a, struct sink **out,
		    struct error *err);
	/* Take the next unit of a feed. */
	int (*put)(struct sink *s, const struct feed_unit *u,
		   struct error *err);
	/* All units came: write the rest, sync, and give the file its name.  Return 0
	 * if the file is there; otherwise nothing has changed.  `s` stays valid until
	 * close. */
	int (*finish)(struct sink *s, struct sink_result *r, struct error *err);
	/* Remove an unfinished file and free the sink. */
	void (*close)(struct sink *s);
};
struct sink {
	const struct sink_ops *ops;
};
/* The last step of `finish`: sync, stop if *stop is set, call a->check, publish. */
struct out;
int sink_publish(const struct sink_args *a, struct out *o,
		 const uint64_t xxh3[2], struct error *err);
/* All sinks; the last row is NULL. */
extern const struct sink_ops *const sink_table[];
extern const struct sink_ops sink_tar, sink_tar_gzip, sink_tar_zstd,
	sink_squashfs, sink_hdf5;
/* Find a sink by the word of --format or, if `format` is NULL, by the suffix of `path`.
 * Return NULL if there is none. */
const struct sink_ops *sink_find(const char *format, const char *path);

#endif
