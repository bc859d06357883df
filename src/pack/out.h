/* SPDX-License-Identifier: BSD-2-Clause */
/* The file that is being made: nothing has its name before it is whole and safe. */
#ifndef PACK_OUT_H
#define PACK_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * It is written beside its place, without a name or as ".NAME.tensorfs-XXXXXX", in one
 * sequential stream; out_publish syncs it, gives it its name, and syncs the directory.  What
 * had the name before is there, whole, until then, and stays when anything fails.
 */
struct out;
/* `mode`: of a new file, less the umask; what is replaced keeps its own.  A symbolic link to
 * a file is that file.  -EEXIST without `replace`; -EISDIR; what open says. */
int out_new(struct out **out, const char *path, mode_t mode, bool replace,
	    struct error *err);
/* Would out_new find what is in its way?  For whoever has much to do before it; removes what
 * makers that are dead have left. */
int out_check(const char *path, bool replace, struct error *err);
/* The next `n` bytes.  -ENOSPC, -EDQUOT, -EIO... with a sentence. */
int out_write(struct out *o, const void *data, size_t n, struct error *err);
/* Take back what was written from `size` on: what follows goes there. */
int out_back(struct out *o, uint64_t size, struct error *err);
/* Bytes written. */
uint64_t out_size(const struct out *o);
/* For what is read back, or written by others: its descriptor (open for both), and a path
 * that opens it in this process. */
int out_fd(const struct out *o);
const char *out_path(const struct out *o);
/* What was written is on the disk. */
int out_sync(struct out *o, struct error *err);
/* Sync, and: 0: it has its name; else nothing has changed. */
int out_publish(struct out *o, struct error *err);
/* Removes what was not published; `o` may be NULL. */
void out_free(struct out *o);
/* For a signal handler: remove the unfinished file. */
void out_abandon(const struct out *o);

#endif
