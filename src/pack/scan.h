/* SPDX-License-Identifier: BSD-2-Clause */
/* List a directory that is to be packed: every entry, in the order of the pack. */
#ifndef PACK_SCAN_H
#define PACK_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct scan_text {
	char *at;
	size_t n, room;
};
struct scan_entry {
	/* Offset in `text` of the path relative to the top, "a/b"; "": the top. */
	uint64_t path;
	uint64_t size;
	uint64_t dev, ino, rdev;
	int64_t mtime, ctime; /* seconds since 1970 */
	uint32_t mtime_ns, ctime_ns;
	/* The first entry with the same inode; the entry's own number if it is the
	 * first. */
	uint64_t same_as;
	uint32_t mode, uid, gid;
	uint32_t nlink : 31;
	/* A feed could not read it, and has reported that. */
	uint32_t left_out : 1;
};
struct scan {
	vec(struct scan_entry) list; /* in order; without the top itself */
	struct scan_text text;
	struct scan_entry top;
	uint64_t bytes; /* bytes of regular files, each inode once */
	/* What could not be read: sentences, each with its NUL. */
	struct scan_text problems;
	uint64_t n_problems;
	uint64_t sockets; /* sockets that were left out */
	/* Index files of archives (members/index.h) that were left out. */
	uint64_t indexes;
};
/* Strings are borrowed.  Lists end with NULL, and may be NULL. */
struct scan_options {
	/* Shell patterns as for tar's --exclude: one matches a path, or the end
	 * of a path behind a '/', and everything below that; '*' matches '/'. */
	const char *const *exclude;
	/* Pack only these paths, what is below them, and the directories above. */
	const char *const *only;
	/* Paths that come first, in this order; a directory stands for everything below
	 * it. */
	const char *const *first;
	bool one_file_system;
	unsigned jobs; /* threads that read directories: >= 1 */
	bool sockets; /* pack sockets; otherwise they are counted and left out */
	/* Files that are not packed: the output and its index.  Other names of the same
	 * inodes are packed. */
	struct scan_skip {
		uint64_t dev, ino, dir_dev, dir_ino;
		char name[256];
	} skip[4];
	unsigned n_skip;
};
/*
 * List everything below `top`, sorted by path, each directory before its contents.  With
 * `first`: all directories, then the paths in `first`, then the rest.  What cannot be
 * read is recorded as a problem and left out; so is a name in `only` or `first` that does
 * not exist.  Return 0; -ENOENT, -ENOTDIR or -EACCES for the top itself; -ENOMEM; -EINTR
 * if *stop was set.  The caller frees *out with scan_free.
 */
int scan_new(struct scan **out, const char *top, const struct scan_options *o,
	     const _Atomic int *stop, struct error *err);
/* `s` may be NULL. */
void scan_free(struct scan *s);
/* Add a problem.  Return false if there is no memory. */
bool scan_problem(struct scan *s, const char *path, const char *what);
/* Open a path below the open directory `top`, of any length.  Return a descriptor, or -1
 * with errno; ELOOP means that a component is a symbolic link. */
int scan_open(int top, const char *path, int flags);
static inline const char *scan_path(const struct scan *s, uint64_t i)
{
	return s->text.at + s->list.at[i].path;
}

#endif
