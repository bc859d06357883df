/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an archive's bytes are: in a file, in a decoded stream, or in a computed
 * file. */
#ifndef STREAM_BACKING_H
#define STREAM_BACKING_H

#include "extent/pinner.h"

struct stream;
struct files;
/*
 * A run of bytes, numbered from 0: `size` bytes from `pos` on, of a backing file as it
 * is, of the decoded bytes of a compressed stream (the run ends within them), or of a
 * node of `files`.  It is a value and can be copied; what it points to is borrowed and
 * must outlive it.
 */
struct backing {
	struct handles *handles;
	struct pinner *pinner; /* pins decoded bytes while they are copied */
	uint32_t file;         /* number in handles */
	struct stream *stream; /* NULL: the bytes of the file itself */
	/* NULL, or the bytes are those of node `node` of these. */
	struct files *files;
	uint64_t node;
	uint64_t pos, size;
};

/* Make a backing of a registered file from `offset` to its end.  Return 0, the
 * errors of handles_get, or -EINVAL if the file ends before `offset`. */
int backing_file(struct backing *out, struct handles *h, struct pinner *p,
		 uint32_t file, uint64_t offset, struct error *err);
/* Return whether its bytes are those of the file, one after the other. */
static inline bool backing_is_plain(const struct backing *b)
{
	return !b->stream && !b->files;
}
/* Return bytes [off, off + len) of `b`, cut at its end. */
struct backing backing_part(const struct backing *b, uint64_t off,
			    uint64_t len);
/* Append extents for up to `len` bytes from `off` on to a plan.  Return the bytes
 * that were mapped; 0 means that the plan is full.  Bytes past the end of `b` are
 * mapped past the end of the file, so pinning them is an error.  Pure. */
uint64_t backing_map(const struct backing *b, uint64_t off, uint64_t len,
		     struct plan *p);
/* Read exactly `len` bytes.  Return 0, -EIO if they lie past the end, or -errno.
 * Blocks. */
int backing_read(const struct backing *b, uint64_t off, void *to, size_t len,
		 struct error *err);
/* Write to `text` which bytes of the backing file these are, as chunk_set_ops.origin
 * does.  Return false if that cannot be said, or not in n bytes. */
bool backing_origin(const struct backing *b, char *text, size_t n);
/* Return the file's name for error sentences. */
const char *backing_name(const struct backing *b);

#endif
