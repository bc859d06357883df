/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of a scan share: walking (scan_walk.c), listing, and ordering. */
#ifndef PACK_SCAN_PRIVATE_H
#define PACK_SCAN_PRIVATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "pack/scan.h"

/* What one thread has found. */
struct scan_found {
	vec(struct scan_entry) list;
	struct scan_text text, problems;
	uint64_t n_problems, sockets, indexes;
	bool no_memory;
};
struct scan_job {
	char *path; /* a directory */
	/* Names in it, each with its NUL; none: read the directory. */
	struct scan_text names;
	bool flat; /* do not read directories among these names */
};
struct scan_walk {
	const struct scan_options *o;
	const _Atomic int *stop;
	int top;
	uint64_t dev;         /* st_dev of the top */
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t changed;
	vec(struct scan_job) stack;
	unsigned busy, waiting;
	bool ended; /* also set when memory is out */
};
struct scan_reader {
	struct scan_walk *w;
	struct scan_found found;
	pthread_t thread;
};
/* Body of a thread: run jobs until there are none left. */
void *scan_work(void *reader);
/* Queue a directory to be read. */
void scan_push(struct scan_walk *w, struct scan_found *f, const char *path);
/* Queue names in the directory `path`, whose attributes are to be read.  Return true if
 * the job owns the names and `names` is empty; false if there is no memory. */
#define SCAN_BUNDLE 256
bool scan_push_names(struct scan_walk *w, struct scan_found *f,
		     const char *path, struct scan_text *names, bool flat);
void scan_add(struct scan_found *f, const char *path, const struct stat *st);
void scan_add_problem(struct scan_found *f, const char *path, const char *what);
struct scan_entry scan_entry_of(const struct stat *st);
bool scan_is_excluded(const struct scan_options *o, const char *path);
/* Normalise a path in place: "./a//b/" becomes "a/b".  Return false if it leads out of
 * the top. */
bool scan_clean(char *path);
/* Compare paths bytewise, with '/' before all other bytes, so that the contents of a
 * directory follow it directly. */
int scan_compare_paths(const char *a, const char *b);
/* Is `path` below the directory `dir`?  "" is the top. */
bool scan_is_below(const char *path, const char *dir);
/* Append `n` bytes.  Return false if there is no memory. */
bool scan_append(struct scan_text *t, const char *data, size_t n);
/* Append "PATH: WHAT" and a NUL.  Return false if there is no memory. */
bool scan_say(struct scan_text *list, const char *path, const char *what);

/* Sort, remove duplicates, move entries of `first` to the front, and find names of the
 * same inode.  Return 0 or -ENOMEM. */
int scan_order(struct scan *s, const struct scan_options *o, struct error *err);

#endif
