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
	struct fs_options options; /* version and config are ours */
	struct errors *errors;
	uint64_t pin_budget; /* decoded bytes one read may hold pinned */
	struct timespec started;
	/* Whole files that are kept in the cache under this number and their inode's, since
	 * somebody is going to ask for them (follow.h); 0: none ever. */
	_Atomic uint64_t kept;
};

/* The file's attributes, through the cache where they are generated. */
int fs_attr(struct fs *fs, const struct node *n, struct attr *out,
	    struct error *err);
/* Note a failure of a reader (ring, counter, log) and return the errno that
 * reader gets: one of ENODATA, EBADMSG, ESTALE, EIO, ENOTSUP, ENOMEM. */
int fs_report(struct fs *fs, uint64_t ino, int code, const struct error *err);

/* Collect the window [off, off + len) of a regular file, which lies within it,
 * into `out`.  Sets the whole of `out` (release it) on success only. */
int reply_collect(struct fs *fs, const struct node *n, uint64_t off, size_t len,
		  struct reply *out, struct error *err);
/* The next plan of a window: map from off + have on; never an empty one. */
int reply_map(const struct node *n, uint64_t off, uint64_t want,
	      struct plan *plan, struct error *err);

/* The window [off, off + len) of a file, copied together; as it is stored. */
int gather_stored(struct fs *fs, const struct node *n, uint64_t off, void *to,
		  size_t len, struct error *err);

/* The window around one of a file whose numbers are reversed (files.reversed), which
 * has whole ones. */
struct reversal {
	uint64_t off;
	size_t len;
	size_t lead;  /* bytes of it before the window that is wanted */
	size_t first; /* and before its first number */
	unsigned width;
};
/* False: nothing in this window (not empty) is reversed. */
bool reverse_around(const struct node *n, uint64_t off, size_t len,
		    struct reversal *out);
/* All of that window, as it is served, into x->len bytes. */
int reverse_gather(struct fs *fs, const struct node *n,
		   const struct reversal *x, void *to, struct error *err);
/* As gather_stored, but as it is served. */
int gather_window(struct fs *fs, const struct node *n, uint64_t off, void *to,
		  size_t len, struct error *err);

#endif
