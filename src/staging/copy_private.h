/* SPDX-License-Identifier: BSD-2-Clause */
/* What planning, writing and comparing share. */
#ifndef STAGING_COPY_PRIVATE_H
#define STAGING_COPY_PRIVATE_H

#include <pthread.h>

#include "staging/copy.h"

/* Larger files are made before and filled in pieces, by whoever is free. */
#define COPY_LARGE (UINT64_C(16) << 20)
#define COPY_PIECE (UINT64_C(8) << 20)
/* Bytes at a time. */
#define COPY_WINDOW ((size_t)1 << 20)

/* Say that reading `ino` failed with `code`, which becomes the error's. */
int copy_fail(struct fs *fs, uint64_t ino, int code, struct error *err);

/* Bytes of whole pages that a copy of `f` takes: pages that lie in holes are not written.
 * Blocks. */
uint64_t copy_space(struct fs *fs, const struct copy_file *f);

/* ---- order (copy_order.c) ------------------------------------------------ */

/* Sort the files by where their bytes are, find those that share chunks. */
int copy_order(struct copy_plan *p, const struct copy_options *o,
	       const _Atomic int *stop, struct error *err);
/* Work for one thread: bytes [off, off + len) of each of n files (all of each:
 * `whole`). */
struct copy_unit {
	uint64_t first, n;
	uint64_t off, len;
	bool whole;
};
struct copy_queue {
	pthread_mutex_t lock;
	const struct copy_plan *plan;
	uint64_t next; /* of files */
	uint64_t off;  /* in it, or in each of its group */
	size_t group;  /* the first that is not done */
};
void copy_queue_init(struct copy_queue *q, const struct copy_plan *p);
/* False: there is no more. */
bool copy_queue_take(struct copy_queue *q, struct copy_unit *out);

/* ---- directories of the copy (copy_dirs.c) ------------------------------- */

/* A few open ones; one for each thread. */
#define COPY_DIRS 64
struct copy_dirs {
	const struct copy_plan *plan;
	int to;
	struct {
		uint32_t dir;
		int fd; /* -1: none */
	} slot[COPY_DIRS];
};
void copy_dirs_init(struct copy_dirs *d, const struct copy_plan *p, int to);
void copy_dirs_free(struct copy_dirs *d);
/* A descriptor that stays open until the next call; -errno. */
int copy_dirs_get(struct copy_dirs *d, uint32_t dir, struct error *err);
/* The name of an entry, as it is in the tree. */
int copy_name(const struct copy_plan *p, const struct copy_file *f,
	      char name[FILES_NAME_MAX + 1], struct error *err);
/* Make all directories. */
int copy_make_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		   struct error *err);
/* Symlinks, hard links; then times and attributes of directories. */
int copy_make_links(const struct copy_plan *p, int to, const _Atomic int *stop,
		    struct error *err);
int copy_finish_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		     struct error *err);
/* Extended attributes of users, where the file system takes them. */
void copy_xattrs(const struct copy_plan *p, uint64_t ino, int fd);

/* ---- threads (copy_run.c) ------------------------------------------------ */

struct copy_run {
	struct copy_job *job;
	struct copy_queue queue;
	pthread_mutex_t lock; /* guards `failure`, `running` */
	pthread_cond_t ended;
	struct error failure; /* the first */
	unsigned running;
	_Atomic bool failed;
	_Atomic uint64_t done; /* bytes */
};
/* What a thread does with a unit; 0 or -errno with a sentence. */
typedef int copy_unit_fn(struct copy_run *r, struct copy_dirs *dirs,
			 const struct copy_unit *u, struct reply *reply,
			 struct error *err);
/* Do all units on all threads; progress is shown meanwhile. */
int copy_run_units(struct copy_job *job, copy_unit_fn *fn, struct error *err);
/* Has somebody failed, or the user had enough? */
bool copy_ends(const struct copy_run *r);

#endif
