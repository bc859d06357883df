/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that are appended once and read at any offset, and need not all be in
 * memory. */
#ifndef STREAM_BLOB_H
#define STREAM_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The states that decoders need to start in the middle of a stream are too large to
 * keep in memory for a large stream, and are seldom read.  A blob begins in memory and
 * continues in an unlinked temporary file; a blob from an index file is a range of that
 * file.
 */
struct blob;
/* Make an empty blob.  The first `memory` bytes stay in memory; the rest goes to a
 * temporary file in `dir` (NULL: $TMPDIR, or /tmp).  Return 0 or -ENOMEM.  The
 * caller frees it. */
int blob_new(struct blob **out, size_t memory, const char *dir,
	     struct error *err);
/* Make a blob of bytes [pos, pos + size) of `fd`, which the blob then owns; on
 * failure it is closed.  Return 0 or -ENOMEM. */
int blob_of_file(struct blob **out, int fd, uint64_t pos, uint64_t size,
		 struct error *err);
/* Make a blob of a copy of these bytes, in memory.  Return 0 or -ENOMEM. */
int blob_of_memory(struct blob **out, const void *data, size_t size,
		   struct error *err);
void blob_free(struct blob *b);
/* Append n bytes; *at becomes their offset.  By one thread at a time.  Return 0,
 * -ENOMEM, or an error of the temporary file: -ENOSPC, -EDQUOT, -EIO.  Blocks. */
int blob_append(struct blob *b, const void *data, size_t n, uint64_t *at,
		struct error *err);
/* Read exactly n bytes.  Any number of threads may read at the same time, but none
 * may append meanwhile.  Return 0, -EBADMSG if the blob ends before, or -errno.
 * Blocks. */
int blob_read(const struct blob *b, uint64_t at, void *to, size_t n,
	      struct error *err);
uint64_t blob_size(const struct blob *b);

#endif
