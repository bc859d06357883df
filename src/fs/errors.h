/* SPDX-License-Identifier: BSD-2-Clause */
/* The last failures that readers met, findable by inode. */
#ifndef FS_ERRORS_H
#define FS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define ERRORS_MAX 256

struct errors;
/* An empty ring; NULL when memory is out. */
struct errors *errors_new(void);
void errors_free(struct errors *e);

/* Note that `ino` failed with `code` (-errno) and `text` now.  The same failure
 * again is counted, not kept twice; the oldest makes room.  Thread-safe. */
void errors_add(struct errors *e, uint64_t ino, int code, const char *text);
/* The same, in the place of what else is known of `ino`: of a name that is not in a
 * directory, of which there are many. */
void errors_replace(struct errors *e, uint64_t ino, int code, const char *text);
/* The newest sentence about `ino`; false (and "") when there is none. */
bool errors_find(struct errors *e, uint64_t ino, char *buf, size_t n);

/* A line for each kept failure, newest first, as many as fit in `n` bytes
 * (terminated; whole lines only); its length.  `path` names an inode, and is
 * called without any lock. */
size_t errors_print(struct errors *e, char *buf, size_t n,
		    void (*path)(void *ctx, uint64_t ino, char *buf, size_t n),
		    void *ctx);

#endif
