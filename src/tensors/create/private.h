/* SPDX-License-Identifier: BSD-2-Clause */
/* What making the files of a tensor, and making them a set, share. */
#ifndef TENSORS_CREATE_PRIVATE_H
#define TENSORS_CREATE_PRIVATE_H

#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#include "codec/pipeline.h"
#include "tensors/create/hdf5_create.h"

/* What was worked out of the arguments. */
struct create_plan {
	const struct create_args *a;
	hid_t type;
	uint32_t elem;   /* bytes of an element */
	unsigned digits; /* of numbers in names */
	uint64_t parts;
	char *dir;            /* where the files go: "." or "a/b" */
	char *before, *after; /* of the {} in the last component */
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
/* The directory that files are made in: ".NAME" and this. */
#define CREATE_MARK ".tensorfs-"
#define CREATE_RANDOM "XXXXXX"
/* tensors/create/names.c.  Out of the pattern: dir, before, after (malloc'ed); out of shape
 * and block: digits, parts.  -EINVAL. */
int create_plan_names(struct create_plan *p, struct error *err);
int create_plan_shape(struct create_plan *p, struct error *err);
/* Length of any file's name. */
size_t create_name_length(const struct create_plan *p);
/* "run_00000-00100.h5"; `n` > create_name_length. */
void create_part_name(const struct create_plan *p, uint64_t part, char *buf,
		      size_t n);
void create_main_name(const struct create_plan *p, char *buf, size_t n);
/* Name of file i, NAME_MAX + 1 bytes; the main file is the last, behind the parts. */
void create_file_name(const struct create_plan *p, uint64_t i, char *buf);

/* "0000-0100" between the pattern's halves? */
bool create_looks_like_part(const struct create_plan *p, const char *name);

/* tensors/create/file.c; the library's lock is not held.  Look at type, chunks and
 * filters: -EINVAL with what to do. */
int create_check(struct create_plan *p, struct create_result *out,
		 struct error *err);
/* A new file at `path` for the rows of this part. */
int create_part(const struct create_plan *p, uint64_t part, const char *path,
		struct error *err);
int create_main(const struct create_plan *p, const char *path,
		struct error *err);

/* ---- the files, while they are made ---------------------------------------- */

#define CREATE_OLD "old"
struct create_set {
	struct create_plan plan;
	int dir;          /* where the files go */
	int fresh;        /* the directory of new ones; -1: none yet */
	int old;          /* of those that they replace; -1 */
	char *name;       /* of `fresh` */
	char *path;       /* the same with its directory */
	_Atomic int code; /* the first failure of a thread */
	struct error *err;
	pthread_mutex_t lock; /* protects *err while there are threads */
};
/* tensors/create/sweep.c.  Remove a directory of files, and those in its old/. */
void create_remove(int dir, const char *name);
/* Directories of dead makers of this main file go; what one was replacing is put back
 * before. */
void create_sweep(const struct create_set *s);
/* Parts that are there of another division. */
uint64_t create_count_others(const struct create_set *s);
/* tensors/create/publish.c.  -errno; -EEXIST: never over a file that came meanwhile, if
 * the file system can say so. */
int create_move(int from, int to, const char *name);
/* From `fresh` to their places, and what is there to `old`; a
 * failure leaves everything as it was. */
int create_publish(struct create_set *s, struct error *err);

#endif
