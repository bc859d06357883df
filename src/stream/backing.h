/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an archive's bytes are: in a file, or in a stream that is decoded. */
#ifndef STREAM_BACKING_H
#define STREAM_BACKING_H

#include "extent/pinner.h"

struct stream;
struct files;
/*
 * A run of bytes, numbered from 0: `size` of them from `pos` on, of a backing file
 * as it is, or of what a compressed stream decodes to (and then no longer than that).  A value: copy it freely;
 * what it points to is borrowed and outlives it.
 */
struct backing {
	struct handles *handles;
	struct pinner *pinner; /* makes decoded bytes stand still */
	uint32_t file;         /* number in handles */
	struct stream *stream; /* NULL: the bytes of the file itself */
	struct files *files;   /* NULL, or node `node` of these is meant */
	uint64_t node;
	uint64_t pos, size;
};

/* The whole of a registered file, or what of it follows `offset`.  -EIO,
 * -ENODATA as handles_get; -EINVAL: it ends before `offset`. */
int backing_file(struct backing *out, struct handles *h, struct pinner *p,
		 uint32_t file, uint64_t offset, struct error *err);
/* Are its bytes those of the file, one after the other? */
static inline bool backing_is_plain(const struct backing *b)
{
	return !b->stream && !b->files;
}
/* Bytes [off, off + len) of `b`, cut at its end. */
struct backing backing_part(const struct backing *b, uint64_t off,
			    uint64_t len);
/* Append extents of the bytes from `off` on, `len` at most; the bytes taken (0:
 * the plan is full).  Beyond the end the extents lie beyond the end of the file:
 * pinning them is the error.  Pure. */
uint64_t backing_map(const struct backing *b, uint64_t off, uint64_t len,
		     struct plan *p);
/* Read exactly `len` bytes; -EIO: they lie beyond the end.  Blocks. */
int backing_read(const struct backing *b, uint64_t off, void *to, size_t len,
		 struct error *err);
/* Which bytes of which kind of the backing file they are, as chunk_set_ops.origin
 * says it.  False: that cannot be said, or not in `n` bytes. */
bool backing_origin(const struct backing *b, char *text, size_t n);
/* The file's name for a sentence. */
const char *backing_name(const struct backing *b);

#endif
