/* SPDX-License-Identifier: BSD-2-Clause */
/* The output file: it gets its name only when it is complete and synced. */
#ifndef PACK_OUT_H
#define PACK_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * The file is written to the directory of its final name, without a name or as
 * ".NAME.tensorfs-XXXXXX", in one sequential stream.  out_publish syncs it, gives it its
 * name, and syncs the directory.  An older file of that name stays complete until then,
 * and remains if anything fails.
 */
struct out;
/* Begin a file.  `mode`, less the umask, is for a new file; a file that replaces another
 * one keeps the mode of the old one.  A symbolic link to a file stands for that file.
 * Return -EEXIST if there is a file and `replace` is false, -EISDIR, or the error of
 * open. */
int out_new(struct out **out, const char *path, mode_t mode, bool replace,
	    struct error *err);
/* Check whether out_new would fail, for callers that have much to do before it.  Also
 * removes temporary files of processes that are dead. */
int out_check(const char *path, bool replace, struct error *err);
/* Append `n` bytes.  Return 0, -ENOSPC, -EDQUOT, -EIO, ... with a sentence. */
int out_write(struct out *o, const void *data, size_t n, struct error *err);
/* Truncate to `size` bytes; the next bytes are written there. */
int out_back(struct out *o, uint64_t size, struct error *err);
/* Number of bytes written so far. */
uint64_t out_size(const struct out *o);
/* The descriptor, open for reading and writing, for bytes that are read back or written
 * by other code; and a path that opens the file in this process.  Both are valid until
 * out_free. */
int out_fd(const struct out *o);
const char *out_path(const struct out *o);
/* Sync the file's contents. */
int out_sync(struct out *o, struct error *err);
/* Sync and give the file its name.  Return 0, or -errno; an older file of that name is
 * unchanged then, unless only the sync of the directory failed. */
int out_publish(struct out *o, struct error *err);
/* Remove the file if it was not published, and free `o`, which may be NULL. */
void out_free(struct out *o);
/* Remove the unfinished file.  May be called in a signal handler. */
void out_abandon(const struct out *o);

#endif
