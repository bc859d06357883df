/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole small files for callers that guess: failures are not logged or counted. */
#ifndef READAHEAD_WHOLE_H
#define READAHEAD_WHOLE_H

#include "fs/fs_private.h"

struct whole {
	uint64_t ino, size;
	struct node node;
	/* Set by whole_is_decoded: the chunks in which the file begins and ends. */
	struct whole_chunk {
		const struct chunk_set *set;
		uint64_t index;
	} first, last;
};
/* Find a regular file whose size is known without I/O.  Returns 0 or -errno. */
int whole_find(struct fs *fs, uint64_t ino, struct whole *out);
/* Return true if both files are in one directory. */
bool whole_is_sibling(const struct whole *a, const struct whole *b);
/* Set *out to the chunk in which the file ends; .set is NULL if it does not end in a
 * chunk.  The file's size must not be 0.  May block.  Returns false if that cannot be
 * known. */
bool whole_end(const struct whole *w, struct whole_chunk *out);
/* Let another thread decode the chunk in which the file ends, if that is not decoded.
 * *ahead is the sum of the bytes asked for so far, of files that are read before.
 * Returns false if no more should be asked for. */
bool whole_want(struct fs *fs, const struct whole *w, uint64_t *ahead);
/* Return true if the whole file is in decoded chunks that are in the cache now.  Does no
 * I/O. */
bool whole_is_decoded(struct fs *fs, struct whole *w);
/* For two files for which whole_is_decoded was true: return true if they begin or end in
 * a common chunk. */
bool whole_shares(const struct whole *a, const struct whole *b);
/* Read all bytes of the file as a READ gets them, checks included; its size must not be
 * 0.  When it returns 0, the caller calls fs_release(out); else it returns -errno.
 * Nothing is logged or counted as an error.  May block. */
int whole_read(struct fs *fs, const struct whole *w, struct reply *out);
/* Get the file's chunks into the cache, where a READ soon after finds them.  May block.
 * Returns false if the file cannot be read. */
bool whole_decode(struct fs *fs, const struct whole *w);

#endif
