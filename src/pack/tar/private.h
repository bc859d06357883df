/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the tar writer share; nobody else includes it. */
#ifndef PACK_TAR_PRIVATE_H
#define PACK_TAR_PRIVATE_H

#include "pack/feed.h"
#include "pack/squeeze.h"
#include "shards/tar_entry.h"

/* ---- its index (pack/tar/index.c) --------------------------------------------- */

struct tar_index;
/* `format` of the stream ("zstd"), or NULL. */
int tar_index_new(struct tar_index **out, const char *format,
		  struct error *err);
/* The next bytes of the tar; `data` as tar_emit has it: these are not kept. */
void tar_index_add(struct tar_index *x, const void *bytes, size_t n, bool data);
/* A block of the stream begins at byte `in` of the file.  Any thread, one at a time. */
void tar_index_block(struct tar_index *x, const struct squeeze_block *b,
		     uint64_t in);
/* The tar is at `path` now.  Save its index; *where (malloc'ed) is that. */
int tar_index_save(struct tar_index *x, const char *path, char **where,
		   struct error *err);
void tar_index_free(struct tar_index *x);

#endif
