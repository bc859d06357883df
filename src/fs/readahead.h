/* SPDX-License-Identifier: BSD-2-Clause */
/* Have the kernel read files of our own mount ahead of their readers. */
#ifndef FS_READAHEAD_H
#define FS_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tree/tree.h"

/* Files of one call at most. */
#define READAHEAD_FILES 64
/* Have all of these files read: the kernel will ask for them soon, or has them.  Waits
 * while many are waiting.  0; -EPIPE: that cannot be done any more. */
typedef int readahead_fn(void *ctx, const uint64_t *ino, unsigned n);

struct readahead;
/* Forks the process that opens them, below `mountpoint`, an absolute path; it has
 * nothing else of ours open, and ends with us.  Borrows `tree`. */
int readahead_new(struct readahead **out, const struct tree *tree,
		  const char *mountpoint, struct error *err);
/* A readahead_fn, `ctx` is the struct readahead.  May be called by several threads. */
int readahead_files(void *ctx, const uint64_t *ino, unsigned n);
/* Was a request sent for that process?  `r` may be NULL. */
bool readahead_sent(const struct readahead *r, pid_t pid);
/* Kills it; who waits in readahead_files comes back.  NULL is allowed. */
void readahead_stop(struct readahead *r);
/* Waits for its end, so requests must be answered, or the connection be gone.  NULL is
 * allowed. */
void readahead_free(struct readahead *r);

#endif
