/* SPDX-License-Identifier: BSD-2-Clause */
/* What walking and ordering share. */
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
	char *path;             /* a directory */
	struct scan_text names; /* in it, each with its NUL; none: read it */
	bool flat;              /* directories among these are not read */
};
struct scan_walk {
	const struct scan_options *o;
	const _Atomic int *stop;
	int top;
	uint64_t dev;         /* of the top */
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t changed;
	vec(struct scan_job) stack;
	unsigned busy, waiting;
	bool ended; /* also: memory is out */
};
struct scan_reader {
	struct scan_walk *w;
	struct scan_found found;
	pthread_t thread;
};
/* A thread: jobs, until there is none. */
void *scan_work(void *reader);
/* A directory to be read. */
void scan_push(struct scan_walk *w, struct scan_found *f, const char *path);
/* Names below it whose attributes are wanted; true: they were taken, `names` is empty. */
#define SCAN_BUNDLE 256
bool scan_push_names(struct scan_walk *w, struct scan_found *f,
		     const char *path, struct scan_text *names, bool flat);
void scan_add(struct scan_found *f, const char *path, const struct stat *st);
void scan_add_problem(struct scan_found *f, const char *path, const char *what);
struct scan_entry scan_entry_of(const struct stat *st);
bool scan_is_excluded(const struct scan_options *o, const char *path);
/* "./a//b/" becomes "a/b"; false: it leads out. */
bool scan_clean(char *path);
/* Bytes, but '/' comes before all others: so what is below a directory follows it at
 * once. */
int scan_compare_paths(const char *a, const char *b);
/* Is `path` below the directory `dir`?  "" is the top. */
bool scan_is_below(const char *path, const char *dir);
/* False: no memory. */
bool scan_append(struct scan_text *t, const char *data, size_t n);
/* A sentence, with its NUL. */
bool scan_say(struct scan_text *list, const char *path, const char *what);

/* Sort, drop what was found twice, put first what is to be first, find the names that
 * inodes have beside their first.  0, -ENOMEM. */
int scan_order(struct scan *s, const struct scan_options *o, struct error *err);

#endif
