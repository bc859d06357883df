/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes appended once and read anywhere, that need not all be in memory. */
#ifndef STREAM_BLOB_H
#define STREAM_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * What decoders need to start in the middle of a stream is too much to keep in
 * memory for a large one, and is read seldom.  A blob begins in memory and goes on
 * in an unlinked temporary file; one that comes from an index file is a range of
 * that.
 */
struct blob;
/* `memory`: bytes after which the rest goes to a file in `dir` (NULL: $TMPDIR or
 * /tmp). */
int blob_new(struct blob **out, size_t memory, const char *dir,
	     struct error *err);
/* Bytes [pos, pos + size) of `fd`, which is the blob's own from now on, also when
 * this fails. */
int blob_of_file(struct blob **out, int fd, uint64_t pos, uint64_t size,
		 struct error *err);
/* A copy of these bytes, in memory. */
int blob_of_memory(struct blob **out, const void *data, size_t size,
		   struct error *err);
void blob_free(struct blob *b);
/* Append; *at is where.  One thread at a time.  -ENOSPC, -EDQUOT, -EIO of the
 * temporary file. */
int blob_append(struct blob *b, const void *data, size_t n, uint64_t *at,
		struct error *err);
/* Exactly n bytes; thread-safe (no append meanwhile).  -EBADMSG: not there. */
int blob_read(const struct blob *b, uint64_t at, void *to, size_t n,
	      struct error *err);
uint64_t blob_size(const struct blob *b);

#endif
