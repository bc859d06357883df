/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the kernel read files of the daemon's own mount before readers ask for them. */
#ifndef READAHEAD_READAHEAD_H
#define READAHEAD_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tree/tree.h"

/* Most files of one call. */
#define READAHEAD_FILES 64
/* Have the `n` files with these inode numbers read: soon the kernel asks for them, or it
 * has them already.  Blocks while many files are queued.  Returns 0, or -EPIPE if files
 * cannot be read ahead any more. */
typedef int readahead_fn(void *ctx, const uint64_t *ino, unsigned n);

struct readahead;
/* Start reading ahead: fork the helper process, which opens files below `mountpoint`, an
 * absolute path, as long as that is on the file system `device` (0: unknown).  The
 * helper has no other descriptor of the daemon and ends with it.  `tree` is borrowed
 * until readahead_free.  Returns 0 or -errno. */
int readahead_new(struct readahead **out, const struct tree *tree,
		  const char *mountpoint, dev_t device, struct error *err);
/* A readahead_fn whose `ctx` is the struct readahead.  Several threads may call it. */
int readahead_files(void *ctx, const uint64_t *ino, unsigned n);
/* Return true if `pid` is the helper, so that a request of it is reading ahead.  `r` may
 * be NULL. */
bool readahead_sent(const struct readahead *r, pid_t pid);
/* Kill the helper; a readahead_files that blocks returns.  `r` may be NULL. */
void readahead_stop(struct readahead *r);
/* Kill the helper, wait for its end, two seconds at most, and free `r`.  The helper ends
 * when its requests are answered or the FUSE connection is gone.  `r` may be NULL. */
void readahead_free(struct readahead *r);

#endif
