/* SPDX-License-Identifier: BSD-2-Clause */
/* Have the kernel read files of our own mount ahead of their readers. */
#ifndef READAHEAD_READAHEAD_H
#define READAHEAD_READAHEAD_H

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
/* Forks the process that opens them, below `mountpoint`, an absolute path, while that is of
 * the file system `device` (0: unknown); it has nothing else of ours open, and ends with us.
 * Borrows `tree`. */
int readahead_new(struct readahead **out, const struct tree *tree,
		  const char *mountpoint, dev_t device, struct error *err);
/* A readahead_fn, `ctx` is the struct readahead.  May be called by several threads. */
int readahead_files(void *ctx, const uint64_t *ino, unsigned n);
/* Was a request sent for that process?  `r` may be NULL. */
bool readahead_sent(const struct readahead *r, pid_t pid);
/* Kills it; a readahead_files that waits returns.  NULL is allowed. */
void readahead_stop(struct readahead *r);
/* Waits two seconds at most for its end, which comes when what it has asked of us is answered
 * or the connection is gone.  NULL is allowed. */
void readahead_free(struct readahead *r);

#endif
