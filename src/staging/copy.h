/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy a tree, or pieces of it, to plain files: plan, does it fit, write, compare. */
#ifndef STAGING_COPY_H
#define STAGING_COPY_H

#include "base/vec.h"
#include "fs/fs.h"

/* A directory of the copy; [0] is its root. */
struct copy_dir {
	uint64_t ino;  /* in the tree */
	uint64_t name; /* offset in `names` */
	uint32_t parent;
	uint32_t depth;
};
/* Anything else: entry `entry` of the tree's directory that `dir` is a copy of, or
 * (COPY_NAMED) something in it that is called names + entry. */
struct copy_file {
	uint64_t ino, size;
	uint64_t entry;
	uint64_t index; /* where its bytes begin, for the order: in `set`, */
	uint32_t set;   /* a chunk set or a backing file, at `index`, */
	uint32_t skip;  /* and so far in there */
	uint32_t dir;
	uint32_t flags;
};
enum {
	COPY_NAMED = 1,
	COPY_EXEC = 2,     /* its owner may execute it */
	COPY_HOLES = 4,    /* it has some */
	COPY_APART = 8,    /* made before, filled in pieces */
	COPY_LINK = 16,    /* a symlink */
	COPY_AGAIN = 32,   /* another name of the file before it */
	COPY_TENSOR = 64,  /* of a tensor: in order already */
	COPY_MISSING = 128 /* a part of it was missing: left out */
};
/* Equal pieces of files that share their chunks, all of them at a time. */
struct copy_group {
	uint64_t first, n; /* of `files` */
	uint64_t window;   /* bytes of each at a time */
};
struct copy_plan {
	struct fs *fs; /* borrowed */
	vec(struct copy_dir) dirs;
	vec(struct copy_file) files; /* in the order of their bytes */
	vec(struct copy_file) links; /* symlinks */
	vec(struct copy_file)
		names; /* hard links, the first name among files */
	vec(struct copy_group) groups;
	vec(char) text;
	uint64_t bytes;    /* of files, as read */
	uint64_t space;    /* as the file system counts: pages, no holes */
	uint64_t apart;    /* of these, taken before a byte is written */
	uint64_t left_out; /* devices, FIFOs, sockets */
	uint64_t missing;  /* with skip_missing: not even their size is known */
};
struct copy_options {
	uint64_t cache_size; /* of the store behind `fs` */
	unsigned threads;
	bool samples_only; /* of a tensor that has samples, leave out its array */
	bool skip_missing; /* leave out files of which a part is missing */
	uint64_t most;     /* entries; more is -ENOSPC */
};
/*
 * What `paths` of the tree are ("": all of it), each a path from the root, in its
 * own place below the root.  `what` is for sentences.  -ENOENT, -ENOSPC (too many
 * entries), -EINTR (*stop was set), or what reading attributes gave.
 */
int copy_plan_new(struct copy_plan **out, struct fs *fs, char *const *paths,
		  size_t n, const struct copy_options *o,
		  const _Atomic int *stop, struct error *err);
void copy_plan_free(struct copy_plan *p);
/* Files, directories, links: each takes an inode. */
uint64_t copy_plan_entries(const struct copy_plan *p);

/* Where it is to go. */
struct copy_room {
	const char *name, *path; /* of what, and where */
	int fd;                  /* of the directory */
	bool memory;             /* its bytes live in memory */
	uint64_t reserve;        /* bytes to be left free */
	uint64_t wanted;         /* bytes that others are filling just now */
	uint64_t wanted_here;    /* of these, in `group` */
	const struct system_headroom *group; /* what the control groups leave */
	uint64_t work; /* memory that staging itself needs */
	uint64_t held; /* memory in use that is given up while it is written */
};
/* -ENOSPC with numbers and what to do. */
int copy_fits(const struct copy_plan *p, const struct copy_room *room,
	      struct error *err);

/* How far it is; called by one thread, some times a second. */
typedef void copy_progress(void *ctx, uint64_t done);
struct copy_job {
	struct copy_plan *plan;
	const struct copy_options *options;
	int to; /* an empty directory of ours */
	const _Atomic int *stop;
	copy_progress *progress;
	void *ctx;
	uint64_t missing; /* files that were left out, set by copy_write */
};
/* Write everything, on all threads.  The first failure ends it: what a reader gets
 * of the source, -ENOSPC, -EDQUOT, -EINTR. */
int copy_write(struct copy_job *job, struct error *err);
/* Is what was written what `fs` gives now, byte by byte?  COPY_DIFFERS: it is not.
 * Else `fs`, or reading, failed. */
#define COPY_DIFFERS (-EBADE)
int copy_compare(struct copy_job *job, struct error *err);

#endif
