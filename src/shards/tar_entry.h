/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the members of a tar, of any type. */
#ifndef SHARDS_TAR_ENTRY_H
#define SHARDS_TAR_ENTRY_H

#include "base/error.h"
#include "shards/unit.h"

/* Called with the bytes of the tar, in order.  `data` is true if they are a member's
 * content, false for headers, sparse maps and padding.  Returns 0 or -errno. */
typedef int tar_emit(void *ctx, const void *bytes, size_t n, bool data,
		     struct error *err);
struct tar_writer;
int tar_writer_new(struct tar_writer **out, bool numeric_owner, tar_emit *emit,
		   void *ctx, struct error *err);
/* Write the headers of an entry, from its first unit.  Functions return 0 or -errno. */
int tar_writer_begin(struct tar_writer *w, const struct feed_unit *u,
		     struct error *err);
/* Write the next `n` bytes of its content; `data` is NULL for zeros.  Bytes in holes
 * are left out. */
int tar_writer_data(struct tar_writer *w, const void *data, uint64_t n,
		    struct error *err);
/* Write the padding of the entry. */
int tar_writer_end(struct tar_writer *w, struct error *err);
/* Write the end of the archive. */
int tar_writer_finish(struct tar_writer *w, struct error *err);
void tar_writer_free(struct tar_writer *w);

#endif
