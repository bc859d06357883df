/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by planning, writing and comparing a copy. */
#ifndef STAGING_COPY_PRIVATE_H
#define STAGING_COPY_PRIVATE_H

#include <pthread.h>

#include "staging/copy.h"

/* Files of more bytes than this are made in advance, and filled in pieces of COPY_PIECE
 * bytes by any thread that is idle. */
#define COPY_LARGE (UINT64_C(16) << 20)
#define COPY_PIECE (UINT64_C(8) << 20)
/* Bytes that are read at a time. */
#define COPY_WINDOW ((size_t)1 << 20)

/* Set *err to say that reading `ino` failed with `code`, and return `code`. */
int copy_fail(struct fs *fs, uint64_t ino, int code, struct error *err);

/* Return the bytes of whole pages that a copy of `f` takes: pages that lie in holes are
 * not counted.  Blocks on reading the source. */
uint64_t copy_space(struct fs *fs, const struct copy_file *f);

/* ---- order (copy_order.c) ------------------------------------------------ */

/* Sort the files by the places of their bytes, and group those that share chunks. */
int copy_order(struct copy_plan *p, const struct copy_options *o,
	       const _Atomic int *stop, struct error *err);
/* Work for one thread: bytes [off, off + len) of each of the n files from `first` on, or,
 * if `whole` is set, all bytes of each. */
struct copy_unit {
	uint64_t first, n;
	uint64_t off, len;
	bool whole;
};
struct copy_queue {
	pthread_mutex_t lock;
	const struct copy_plan *plan;
	uint64_t next; /* number of the next file */
	uint64_t off;  /* bytes done of it, or of each file of its group */
	size_t group;  /* number of the first group that is not done */
};
void copy_queue_init(struct copy_queue *q, const struct copy_plan *p);
/* Set *out to the next unit, or return false if none is left.  Any thread may call it. */
bool copy_queue_take(struct copy_queue *q, struct copy_unit *out);

/* ---- directories of the copy (copy_dirs.c) ------------------------------- */

/* A cache of open directories; each thread has its own. */
#define COPY_DIRS 64
struct copy_dirs {
	const struct copy_plan *plan;
	int to; /* descriptor of the root; borrowed */
	struct {
		uint32_t dir;
		int fd; /* -1: the slot is free */
	} slot[COPY_DIRS];
};
void copy_dirs_init(struct copy_dirs *d, const struct copy_plan *p, int to);
void copy_dirs_free(struct copy_dirs *d);
/* Return a borrowed descriptor that is valid until the next call, or -errno. */
int copy_dirs_get(struct copy_dirs *d, uint32_t dir, struct error *err);
/* Set `name` to the name that the entry has in the tree.  Return 0 or -errno. */
int copy_name(const struct copy_plan *p, const struct copy_file *f,
	      char name[FILES_NAME_MAX + 1], struct error *err);
/* Make all directories of the copy.  Return 0 or -errno; -EINTR if *stop was set, as the
 * next two. */
int copy_make_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		   struct error *err);
/* Make symlinks and hard links; then set times and attributes of directories. */
int copy_make_links(const struct copy_plan *p, int to, const _Atomic int *stop,
		    struct error *err);
int copy_finish_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		     struct error *err);
/* Copy the `user.` extended attributes of `ino` to `fd`; errors are ignored. */
void copy_xattrs(const struct copy_plan *p, uint64_t ino, int fd);

/* ---- threads (copy_run.c) ------------------------------------------------ */

struct copy_run {
	struct copy_job *job;
	struct copy_queue queue;
	pthread_mutex_t lock; /* guards `failure`, `running` */
	pthread_cond_t ended;
	struct error failure; /* the first failure */
	unsigned running;     /* number of threads that have not ended */
	_Atomic bool failed;
	_Atomic uint64_t done; /* bytes written or compared */
};
/* Process one unit in a thread of the run.  Return 0, or -errno with *err set. */
typedef int copy_unit_fn(struct copy_run *r, struct copy_dirs *dirs,
			 const struct copy_unit *u, struct reply *reply,
			 struct error *err);
/* Process all units with all threads; blocks, and calls job->progress meanwhile.  Return
 * 0 or the first -errno; -EINTR if *job->stop was set. */
int copy_run_units(struct copy_job *job, copy_unit_fn *fn, struct error *err);
/* Return whether a thread has failed, or the user has interrupted the run. */
bool copy_ends(const struct copy_run *r);

#endif
