/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `create` share. */
#ifndef TENSORS_CREATE_PRIVATE_H
#define TENSORS_CREATE_PRIVATE_H

#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#include "codec/pipeline.h"
#include "tensors/create/hdf5_create.h"

/* What follows from the arguments. */
struct create_plan {
	const struct create_args *a;
	hid_t type;
	uint32_t elem;   /* bytes of an element */
	unsigned digits; /* digits of numbers in names */
	uint64_t parts;
	char *dir;            /* where the files go: "." or "a/b" */
	char *before, *after; /* the last component before and after the {} */
};
static inline uint64_t create_begin(const struct create_plan *p, uint64_t part)
{
	return part * p->a->block;
}
static inline uint64_t create_end(const struct create_plan *p, uint64_t part)
{
	uint64_t rows = p->a->shape[0];

	return rows - create_begin(p, part) < p->a->block
		       ? rows
		       : create_begin(p, part) + p->a->block;
}
/* The directory that files are made in is ".NAME" and this. */
#define CREATE_MARK ".tensorfs-"
#define CREATE_RANDOM "XXXXXX"
/* tensors/create/names.c.  Set, from the pattern: dir, before, after (malloc'ed); from
 * shape and block: digits, parts.  Return 0 or -EINVAL. */
int create_plan_names(struct create_plan *p, struct error *err);
int create_plan_shape(struct create_plan *p, struct error *err);
/* Length of the longest file name. */
size_t create_name_length(const struct create_plan *p);
/* Write the name of a part, "run_00000-00100.h5", to `buf`; `n` > create_name_length. */
void create_part_name(const struct create_plan *p, uint64_t part, char *buf,
		      size_t n);
void create_main_name(const struct create_plan *p, char *buf, size_t n);
/* Write the name of file `i` to `buf`, which has NAME_MAX + 1 bytes.  The main file comes
 * last, after the parts. */
void create_file_name(const struct create_plan *p, uint64_t i, char *buf);

/* Is this name the pattern with "0000-0100" for the {}? */
bool create_looks_like_part(const struct create_plan *p, const char *name);

/* tensors/create/file.c.  The library's lock is not held.  Check type, chunks and
 * filters.  Return 0, or -EINVAL with a remedy. */
int create_check(struct create_plan *p, struct create_result *out,
		 struct error *err);
/* Make a new file at `path` for the rows of this part, or the main file. */
int create_part(const struct create_plan *p, uint64_t part, const char *path,
		struct error *err);
int create_main(const struct create_plan *p, const char *path,
		struct error *err);

/* ---- the files, while they are made ---------------------------------------- */

#define CREATE_OLD "old"
struct create_set {
	struct create_plan plan;
	int dir;   /* where the files go */
	int fresh; /* the directory of new files; -1: none yet */
	/* The directory of files that they replace; -1: none. */
	int old;
	char *name;       /* name of `fresh` */
	char *path;       /* path of `fresh` */
	_Atomic int code; /* the first failure of a thread */
	struct error *err;
	pthread_mutex_t lock; /* protects *err while there are threads */
};
/* tensors/create/sweep.c.  Remove a directory with its files, and those in its old/. */
void create_remove(int dir, const char *name);
/* Remove directories that killed processes left for this main file.  Files that one of
 * them was replacing are put back before. */
void create_sweep(const struct create_set *s);
/* Number of parts with another division of rows. */
uint64_t create_count_others(const struct create_set *s);
/* tensors/create/publish.c.  Move a file.  Return 0 or -errno; -EEXIST, instead of
 * replacing a file that appeared meanwhile, if the file system can detect that. */
int create_move(int from, int to, const char *name);
/* Move the new files from `fresh` to their places, and existing files to `old`.  After a
 * failure everything is as before. */
int create_publish(struct create_set *s, struct error *err);

#endif
