/* SPDX-License-Identifier: BSD-2-Clause */
/* WebDataset shards: a directory packed as a row of tars, each sample whole in one of
 * them. */
#ifndef PACK_SHARDS_SHARDS_H
#define PACK_SHARDS_SHARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "pack/feed.h"
#include "pack/scan.h"
#include "pack/sink.h"
#include "shards/key.h"
#include "shards/layout.h"

/* ---- names --------------------------------------------------------------- */

/* A pattern such as "DIR/out-%06d.tar": one %d, %Nd or %0Nd in the base name stands for
 * the number, from 0; "%%" there is a '%'. */
struct shards_name {
	char *dir;    /* the directory of the shards; "." if none is named */
	char *before; /* the text before and after the number */
	char *after;
	/* Least number of digits; 0: as many as the number has. */
	unsigned width;
	bool zeros;
	char *index; /* base name of the index, "out-index.json" */
};
/* Parse a pattern; shards_name_free frees *out.  Returns 0, -EINVAL if the pattern has
 * not exactly one number or has what a name cannot have, or -ENOMEM. */
int shards_name_parse(struct shards_name *out, const char *pattern,
		      struct error *err);
void shards_name_free(struct shards_name *n);
/* Return the base name of shard `k`, for the caller to free; NULL if memory ran out. */
char *shards_name_of(const struct shards_name *n, uint64_t k);
/* Return true if `base` is the base name of a shard, and set *k to its number. */
bool shards_name_is(const struct shards_name *n, const char *base, uint64_t *k);

/* ---- planning ------------------------------------------------------------ */

struct shards_rules {
	struct shards_cut cut;
	struct shards_order order;
	bool numeric_owner;       /* the same as in the sink */
	struct feed_options attr; /* owner and time that members get */
	const char *top;          /* the directory that was scanned */
	/* Shards of an earlier run in that directory are left out; NULL: nothing is
	 * left out. */
	const struct shards_name *name;
};
struct shards_plan {
	shards_list list; /* of ranges of the scan's entries */
	uint64_t samples, files;
	uint64_t bytes;     /* bytes of the files' content */
	uint64_t others;    /* number of files that belong to no sample */
	char *other;        /* path of the first of them, or NULL */
	uint64_t not_files; /* number of FIFOs, devices and sockets */
	/* Number of symlinks that would be members; each is a problem of the scan. */
	uint64_t n_links;
};
/*
 * Decide which files are samples, in which order, and in which shard; only the scan is
 * read.  shards/layout.h decides it, also for the views that show shards without
 * writing.
 *
 * Afterwards scan->list has the members alone, sample by sample: samples in the order
 * of the scan (by their first member) or shuffled, the members of one in the order of
 * the scan.  Names of one inode become files of their own, because a shard has to stand
 * alone; scan->bytes counts them so.  Symlinks that would be members are problems of
 * the scan.  Returns 0, -ENODATA if there are no samples, -ENOTSUP if a field is there
 * twice, -EINVAL if there are fewer samples than shards, or another -errno.
 */
int shards_plan(struct shards_plan *out, struct scan *s,
		const struct shards_rules *r, struct error *err);
void shards_plan_free(struct shards_plan *p);
/* Reduce attributes to those of members, so that headers are small and the same
 * everywhere: whole seconds, no holes, no extended attributes. */
void shards_attr(struct feed_attr *a);

/* ---- writing ------------------------------------------------------------- */

struct shards_options {
	const char *pattern;
	const struct sink_ops *ops; /* the sink of a tar */
	struct shards_rules rules;  /* name and top are set by shards_pack */
	struct sink_args sink;      /* path and scan are set by shards_pack */
	struct feed_options feed;   /* xattrs is set by shards_pack */
	const char *top;
	const _Atomic int *stop;
	/* Optional.  `done` of `total` bytes are packed. */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};
struct shard_result {
	struct sink_result sink;
	/* What is in the shard; files that vanished are not. */
	uint64_t samples, files;
};
struct shards_result {
	struct shards_plan plan;
	struct shard_result *shards; /* one for each of plan.list */
	uint64_t stored;             /* bytes of all shards */
	char *index;                 /* path of the index */
	char *codec;
	struct shards_name name;
};
/* Check what shards_pack would refuse for any content: options, names, files in the
 * way.  Returns 0 or -errno. */
int shards_check(const struct shards_options *o, struct error *err);
/*
 * Plan and write the shards.  All shards, their member indexes, and the index of shards
 * are made in a directory ".NAME.tensorfs-XXXXXX" beside their places, and get their
 * names when the last one is complete and synced.  Returns 0 if all are there;
 * otherwise no name has changed.  -EEXIST: there are shards of that pattern (or, with
 * sink.replace, some that would remain with the new ones).  Files that could not be
 * read are in scan->problems.
 *
 * The index has the form of wids ("wids-shard-index-v1": shardlist, url, nsamples,
 * filesize), and also nfiles and xxh3_128.  It has no md5sum, which no reader of the
 * index needs and which would cost more than the packing.
 */
int shards_pack(struct shards_result *out, const struct shards_options *o,
		struct scan *scan, struct error *err);
void shards_result_free(struct shards_result *r);

#endif
