/* SPDX-License-Identifier: BSD-2-Clause */
/* WebDataset shards: a directory as a row of tars, each sample whole in one of them. */
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

/* "DIR/out-%06d.tar": one %d, %Nd or %0Nd in the base name gives the number, from 0; "%%"
 * there is a '%'. */
struct shards_name {
	char *dir;    /* where they are; "." */
	char *before; /* what is around the number */
	char *after;
	unsigned width; /* digits at least; 0: as many as it has */
	bool zeros;
	char *index; /* base name of the index: "out-index.json" */
};
/* -EINVAL: it has not exactly one number, or what a name cannot have. */
int shards_name_parse(struct shards_name *out, const char *pattern,
		      struct error *err);
void shards_name_free(struct shards_name *n);
/* The base name of shard `k`; malloc'ed; NULL: no memory. */
char *shards_name_of(const struct shards_name *n, uint64_t k);
/* Is it the base name of a shard?  *k is which. */
bool shards_name_is(const struct shards_name *n, const char *base, uint64_t *k);

/* ---- planning ------------------------------------------------------------ */

struct shards_rules {
	struct shards_cut cut;
	struct shards_order order;
	bool numeric_owner;       /* as the sink has it */
	struct feed_options attr; /* whose, and of when, members shall be */
	const char *top;          /* the directory that was scanned */
	const struct shards_name
		*name; /* shards of an earlier run that are in it
					   are left out; NULL: none are */
};
struct shards_plan {
	shards_list list; /* of entries of the scan */
	uint64_t samples, files;
	uint64_t bytes;     /* that are in the files */
	uint64_t others;    /* files that belong to no sample */
	char *other;        /* the first of them; NULL */
	uint64_t not_files; /* FIFOs, devices, sockets */
	uint64_t n_links;   /* symlinks that would be members: problems */
};
/*
 * Which files are samples, in which order, and in which shard: reads nothing but the scan.
 * shards/layout.h decides, of which those have the same who show shards without writing.
 *
 * scan->list then has the members alone, sample by sample, in their order: samples in that
 * of the scan (by their first member) or shuffled; members of one in that of the scan.
 * Names of one inode are files of their own, as a shard has to stand alone; scan->bytes
 * counts them so.  Symlinks that would be members are problems of the scan.
 * -ENODATA: no samples; -ENOTSUP: a field that is there twice; -EINVAL: fewer samples
 * than shards.
 */
int shards_plan(struct shards_plan *out, struct scan *s,
		const struct shards_rules *r, struct error *err);
void shards_plan_free(struct shards_plan *p);
/* What members have, for their headers to be small and the same everywhere: whole
 * seconds, no holes, no extended attributes. */
void shards_attr(struct feed_attr *a);

/* ---- writing ------------------------------------------------------------- */

struct shards_options {
	const char *pattern;
	const struct sink_ops *ops; /* a tar's */
	struct shards_rules rules;  /* name and top are set by shards_pack */
	struct sink_args sink;      /* path and scan are set by shards_pack */
	struct feed_options feed;   /* xattrs is set by shards_pack */
	const char *top;
	const _Atomic int *stop;
	void (*progress)(void *ctx, uint64_t done, uint64_t total); /* bytes */
	void *ctx;
};
struct shard_result {
	struct sink_result sink;
	uint64_t samples, files; /* what is in it: what vanished is not */
};
struct shards_result {
	struct shards_plan plan;
	struct shard_result *shards; /* plan.list.n of them */
	uint64_t stored;             /* bytes of all */
	char *index;                 /* path */
	char *codec;
	struct shards_name name;
};
/* What shards_pack would refuse whatever is packed: options, names, what is in the way. */
int shards_check(const struct shards_options *o, struct error *err);
/*
 * Plan and write.  All shards, their indexes, and the index of shards are made in a
 * directory ".NAME.tensorfs-XXXXXX" beside their places, and get their names when the last
 * one is whole and synced: 0: all are there; else no name has changed.  -EEXIST: there
 * are shards of that pattern (or, with sink.replace, some that would stay beside the new
 * ones).  What could not be read is in scan->problems.
 *
 * The index has the form of wids ("wids-shard-index-v1": shardlist, url, nsamples,
 * filesize), with nfiles and xxh3_128 beside; there is no md5sum, which no reader of it
 * needs, and which would cost more than the packing.
 */
int shards_pack(struct shards_result *out, const struct shards_options *o,
		struct scan *scan, struct error *err);
void shards_result_free(struct shards_result *r);

#endif
