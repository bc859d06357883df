/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the tar writer share. */
#ifndef PACK_TAR_PRIVATE_H
#define PACK_TAR_PRIVATE_H

#include "pack/feed.h"
#include "pack/squeeze.h"
#include "shards/tar_entry.h"

/* ---- its index (pack/tar/index.c) -------------------------------------------- */

struct tar_index;
/* Start the scanner.  `format` names the compression ("zstd"), or is NULL. */
int tar_index_new(struct tar_index **out, const char *format,
		  struct error *err);
/* Record the next bytes of the tar.  `data`: these are contents of a member, which are
 * counted but not kept.  Waits for the scanner. */
void tar_index_add(struct tar_index *x, const void *bytes, size_t n, bool data);
/* Record that block `b` of the stream begins at byte `in` of the file.  Any thread, one
 * at a time. */
void tar_index_block(struct tar_index *x, const struct squeeze_block *b,
		     uint64_t in);
/* Save the index of the tar, which is at `path` now.  Set *where to the path of the
 * index, which the caller frees. */
int tar_index_save(struct tar_index *x, const char *path, char **where,
		   struct error *err);
/* End the scanner and free `x`, which may be NULL. */
void tar_index_free(struct tar_index *x);

#endif
