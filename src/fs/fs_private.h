/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share and others need not know. */
#ifndef FS_FS_PRIVATE_H
#define FS_FS_PRIVATE_H

#include <stdatomic.h>
#include <time.h>

#include "fs/errors.h"
#include "fs/fs.h"
#include "fs/gather.h"

struct fs {
	struct tree *tree;
	struct store *store;
	struct fs_options options; /* version and config are copies, owned */
	struct errors *errors;
	uint64_t pin_budget; /* decoded bytes that one read may hold pinned */
	struct timespec started;
	/* Chunk set under which the cache keeps whole files that will be read soon, each by its
	 * inode number (readahead/follow.h); 0: no file was ever kept. */
	_Atomic uint64_t kept;
};

/* Get the file's attributes; generated ones come through the cache, so this may block. */
int fs_attr(struct fs *fs, const struct node *n, struct attr *out,
	    struct error *err);
/* Record a failure of a reader in the ring, the counter and the log, and return the errno
 * for that reader: one of ENODATA, EBADMSG, ESTALE, EIO, ENOTSUP, ENOMEM. */
int fs_report(struct fs *fs, uint64_t ino, int code, const struct error *err);

/* What is known of a window before its bytes are collected. */
struct window {
	struct file_window of;
	bool planned; /* `plan` is the first plan of the window */
	struct plan plan;
};
/* Prepare to read [off, off + w->of.len), which lies within the file and is not empty; the
 * first plan is not made yet. */
void window_init(struct window *w, const struct node *n, uint64_t len);

/* Collect the window [off, off + w->of.len) of a regular file into `out`.  Overwrites the
 * plan.  After success the caller releases `out`; after an error it is not set. */
int reply_collect(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, struct reply *out, struct error *err);
/* Map at most `want` bytes from `off` on into a plan, which is never empty. */
int reply_map(const struct node *n, uint64_t off, uint64_t want,
	      struct plan *plan, struct error *err);
/* Make the plan of a window from its byte `have` on; the first one may be there already. */
int window_map(struct window *w, const struct node *n, uint64_t off,
	       uint64_t have, struct error *err);

/* Copy the window [off, off + w->of.len) of a file to `to`, numbers in stored order. */
int gather_stored(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, void *to, struct error *err);

/* A window of a file whose numbers are served reversed (files.reversed), widened so that
 * it begins and ends between numbers.  Positions and lengths are in bytes. */
struct reversal {
	uint64_t off;
	size_t len;
	size_t lead;  /* bytes of it before the wanted window */
	size_t first; /* bytes of it before its first number */
	unsigned width;
};
/* Set *out to the widened window.  Return false if no byte of the window, which is not
 * empty, is reversed. */
bool reverse_around(const struct file_window *w, uint64_t off,
		    struct reversal *out);
/* Copy all of that window, as it is served, to x->len bytes at `to`.  Overwrites *w. */
int reverse_gather(struct fs *fs, const struct node *n,
		   const struct reversal *x, struct window *w, void *to,
		   struct error *err);
/* Copy that window to `to`, as it is served. */
int gather_window(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, void *to, struct error *err);

#endif
