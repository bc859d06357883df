/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy a tree, or parts of it, to plain files: plan, check the room, write, compare. */
#ifndef STAGING_COPY_H
#define STAGING_COPY_H

#include "base/vec.h"
#include "fs/fs.h"

/* A directory of the copy; dirs[0] is the root of the copy. */
struct copy_dir {
	uint64_t ino;    /* in the tree */
	uint64_t name;   /* offset in `text`, in bytes */
	uint32_t parent; /* its number in `dirs` */
	uint32_t depth;  /* levels below the root */
};
/* A file or link of the copy.  `entry` is its number in the tree's directory that `dir`
 * is a copy of, or, with COPY_NAMED, the offset of its name in `text`. */
struct copy_file {
	uint64_t ino, size; /* size in bytes */
	uint64_t entry;
	/* Where its first byte is, for the order of copying. */
	uint64_t index; /* chunk number, or position in the backing file */
	uint32_t set;  /* chunk set, or backing file with bit 31 set; UINT32_MAX
			 * for a tensor, where `index` counts files */
	uint32_t skip; /* bytes into the chunk */
	uint32_t dir;  /* its directory's number in `dirs` */
	uint32_t flags;
};
enum {
	COPY_NAMED = 1,    /* `entry` is an offset in `text` */
	COPY_EXEC = 2,     /* its owner may execute it */
	COPY_HOLES = 4,    /* it has holes */
	COPY_APART = 8,    /* made in advance, and filled in pieces */
	COPY_LINK = 16,    /* a symlink */
	COPY_AGAIN = 32,   /* another name (hard link) of the file before it */
	COPY_TENSOR = 64,  /* a view of a tensor: files are in order already */
	COPY_MISSING = 128 /* a part of it was missing: it is left out */
};
/* Files that share chunks: one window of each of them is copied, then the next window. */
struct copy_group {
	uint64_t first, n; /* the first of them in `files`, and their number */
	uint64_t window;   /* bytes of each file that are copied at a time */
};
struct copy_plan {
	struct fs *fs; /* borrowed */
	vec(struct copy_dir) dirs;
	vec(struct copy_file) files; /* in the order of their bytes */
	vec(struct copy_file) links; /* symlinks */
	vec(struct copy_file)
		names; /* files with hard links: all their names by inode; the
			* first of each is in `files`, too */
	vec(struct copy_group) groups;
	vec(char) text;    /* names, each with its NUL */
	uint64_t bytes;    /* sum of the sizes of files */
	uint64_t space;    /* bytes on the file system: whole pages, no holes */
	uint64_t apart;    /* bytes allocated before anything is written */
	uint64_t left_out; /* number of devices, FIFOs and sockets */
	uint64_t missing;  /* with skip_missing: files of unknown size */
};
struct copy_options {
	uint64_t cache_size; /* in bytes, of the store behind `fs` */
	unsigned threads;
	bool samples_only; /* leave out the array files of a tensor that has samples */
	bool skip_missing; /* leave out files of which a part is missing */
	uint64_t most;     /* limit of the number of entries; more is -ENOSPC */
};
/*
 * Plan to copy `n` paths of the tree, each to the same path below the root of the copy
 * ("" is the whole tree).  Return 0 with a plan in *out that copy_plan_free frees, or
 * -errno with *out NULL: -ENOENT if a path does not exist, -ENOSPC if there are too many
 * entries, -EINTR if *stop was set, or an error of reading attributes.
 */
int copy_plan_new(struct copy_plan **out, struct fs *fs, char *const *paths,
		  size_t n, const struct copy_options *o,
		  const _Atomic int *stop, struct error *err);
void copy_plan_free(struct copy_plan *p);
/* Return the number of directories, files and links; each is counted as one inode. */
uint64_t copy_plan_entries(const struct copy_plan *p);

/* The place that the copy is written to, and what is left there. */
struct copy_room {
	const char *name, *path; /* of the copy, of the directory */
	int fd;                  /* an open descriptor of the directory */
	bool memory;      /* the directory is on a file system in memory */
	uint64_t reserve; /* bytes to be left free */
	uint64_t wanted;  /* bytes that other processes have still to write */
	uint64_t wanted_here; /* of these, by processes of `group` */
	const struct system_headroom *group; /* left by control groups */
	uint64_t work; /* bytes of memory that staging itself needs */
	uint64_t held; /* bytes of memory that writing the copy frees */
};
/* Return 0 if the copy fits, -ENOSPC with a sentence that has the numbers and a remedy if
 * not, or another -errno. */
int copy_fits(const struct copy_plan *p, const struct copy_room *room,
	      struct error *err);

/* Called by one thread, about ten times a second; `done` is in bytes. */
typedef void copy_progress(void *ctx, uint64_t done);
struct copy_job {
	struct copy_plan *plan;
	const struct copy_options *options;
	int to; /* descriptor of the directory of the copy; empty for copy_write */
	const _Atomic int *stop;
	copy_progress *progress;
	void *ctx;
	uint64_t missing; /* files that were left out; set by copy_write */
};
/* Write the whole copy with all threads; blocks until it is done or has failed.
 * Return 0, or the first failure's -errno: one that reading the source gives, -ENOSPC,
 * -EDQUOT, or -EINTR if *stop was set. */
int copy_write(struct copy_job *job, struct error *err);
/* Compare each byte that was written with what `fs` gives now.  Return 0 if all are
 * equal, COPY_DIFFERS if not, or another -errno if `fs` or reading the copy failed. */
#define COPY_DIFFERS (-EBADE)
int copy_compare(struct copy_job *job, struct error *err);

#endif
