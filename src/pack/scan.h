/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a directory that is to be packed: every entry, in the order of the pack. */
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
	uint64_t path; /* offset in `text`: from the top, "a/b"; "": the top */
	uint64_t size;
	uint64_t dev, ino, rdev;
	int64_t mtime, ctime; /* seconds since 1970 */
	uint32_t mtime_ns, ctime_ns;
	uint64_t same_as; /* the entry whose inode this is another name of; its
			     own number: none comes before it */
	uint32_t mode, uid, gid;
	uint32_t nlink : 31;
	uint32_t left_out : 1; /* a feed could not read it, and has said so */
};
struct scan {
	vec(struct scan_entry) list; /* in order; the top is not in it */
	struct scan_text text;
	struct scan_entry top;
	uint64_t bytes; /* of regular files, each inode once */
	struct scan_text
		problems; /* sentences, each with its NUL: what could not be
				      read */
	uint64_t n_problems;
	uint64_t sockets; /* that were left out */
	uint64_t indexes; /* of archives (members/index.h), left out as well */
};
/* Strings are borrowed; NULL-terminated lists, or NULL. */
struct scan_options {
	const char *const
		*exclude; /* as tar's --exclude: patterns of shells, which
				       match a path, or the end of one behind a
				       '/', and what is below; '*' matches '/' */
	const char *const *only;  /* paths: these, what is below them, and the
				       directories above */
	const char *const *first; /* paths that come first, in this order; of a
				       directory, what is below it */
	bool one_file_system;
	unsigned jobs; /* threads that read directories: >= 1 */
	bool sockets;  /* keep them; else they are noted and left out */
	/* Files that are not packed, be they there: the output, and its index; other
	 * names of them are. */
	struct scan_skip {
		uint64_t dev, ino, dir_dev, dir_ino;
		char name[256];
	} skip[4];
	unsigned n_skip;
};
/*
 * Look at everything below `top`.  In order of paths, each directory before what is in
 * it; with `first`: all directories, then what `first` names, then the rest.  What cannot be read is a problem,
 * and left out; so is a name in `only` or `first` that is not there.  -ENOENT,
 * -ENOTDIR, -EACCES of the top; -ENOMEM; -EINTR: *stop was set.
 */
int scan_new(struct scan **out, const char *top, const struct scan_options *o,
	     const _Atomic int *stop, struct error *err);
void scan_free(struct scan *s);
/* One more, for s->problems; false: no memory. */
bool scan_problem(struct scan *s, const char *path, const char *what);
/* Open what is below the open directory `top`, however long its path is; -1 with ELOOP:
 * there is a symbolic link on the way. */
int scan_open(int top, const char *path, int flags);
static inline const char *scan_path(const struct scan *s, uint64_t i)
{
	return s->text.at + s->list.at[i].path;
}

#endif
