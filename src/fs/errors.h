/* SPDX-License-Identifier: BSD-2-Clause */
/* The last failures of readers, found by inode. */
#ifndef FS_ERRORS_H
#define FS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define ERRORS_MAX 256

struct errors;
/* Make an empty ring; NULL when out of memory. */
struct errors *errors_new(void);
void errors_free(struct errors *e);

/* Record that a read of `ino` failed with `code` (-errno) and `text` now.  A repeated
 * failure is counted, not kept twice; a new one replaces the oldest.  Thread-safe. */
void errors_add(struct errors *e, uint64_t ino, int code, const char *text);
/* Record a failure in place of any other failure of `ino`: for names that a directory
 * does not have, because there may be many of them. */
void errors_replace(struct errors *e, uint64_t ino, int code, const char *text);
/* Copy the newest sentence about `ino` to `buf`; return false, and set "", if there is
 * none. */
bool errors_find(struct errors *e, uint64_t ino, char *buf, size_t n);

/* Write a line for each failure, newest first, as many whole lines as fit in `n` bytes
 * with the terminator; return the length.  `path` writes the path of an inode, and is
 * called without a lock. */
size_t errors_print(struct errors *e, char *buf, size_t n,
		    void (*path)(void *ctx, uint64_t ino, char *buf, size_t n),
		    void *ctx);

#endif
