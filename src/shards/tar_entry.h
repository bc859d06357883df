/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a tar as bytes. */
#ifndef SHARDS_TAR_ENTRY_H
#define SHARDS_TAR_ENTRY_H

#include "base/error.h"
#include "shards/unit.h"

/* Bytes of the tar, in order.  `data`: they are a member's own; else headers, sparse
 * maps, padding. */
typedef int tar_emit(void *ctx, const void *bytes, size_t n, bool data,
		     struct error *err);
struct tar_writer;
int tar_writer_new(struct tar_writer **out, bool numeric_owner, tar_emit *emit,
		   void *ctx, struct error *err);
/* The headers of an entry, from its first unit. */
int tar_writer_begin(struct tar_writer *w, const struct feed_unit *u,
		     struct error *err);
/* The next `n` bytes of it; NULL: zeros.  What is in holes is left out. */
int tar_writer_data(struct tar_writer *w, const void *data, uint64_t n,
		    struct error *err);
/* What is behind it. */
int tar_writer_end(struct tar_writer *w, struct error *err);
/* The end of the archive. */
int tar_writer_finish(struct tar_writer *w, struct error *err);
void tar_writer_free(struct tar_writer *w);

#endif
