/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole small files for whoever guesses that they are wanted: failures are told to nobody. */
#ifndef READAHEAD_WHOLE_H
#define READAHEAD_WHOLE_H

#include "fs/fs_private.h"

struct whole {
	uint64_t ino, size;
	struct node node;
	/* Once it was found to be decoded. */
	struct whole_chunk {
		const struct chunk_set *set;
		uint64_t index;
	} first, last;
};
/* A regular file whose size is known without I/O; else -errno. */
int whole_find(struct fs *fs, uint64_t ino, struct whole *out);
/* Are both in one directory? */
bool whole_is_sibling(const struct whole *a, const struct whole *b);
/* The chunk in which it ends (size > 0); .set NULL: it does in none.  May block.  False:
 * nobody knows. */
bool whole_end(const struct whole *w, struct whole_chunk *out);
/* Let another thread decode that chunk, if it has to be.  *ahead is the sum of what was
 * asked for so far, of all who are read first.  False: that is enough. */
bool whole_want(struct fs *fs, const struct whole *w, uint64_t *ahead);
/* Is all of it in decoded chunks, which are in the cache now?  No I/O. */
bool whole_is_decoded(struct fs *fs, struct whole *w);
/* Of two that are: does the one begin or end in a chunk that the other does? */
bool whole_shares(const struct whole *a, const struct whole *b);
/* All of its bytes (size > 0), as a read has them, checks included; fs_release(out)
 * when it is 0.  Nothing is logged or counted as an error.  May block. */
int whole_read(struct fs *fs, const struct whole *w, struct reply *out);
/* Have its chunks in the cache, which a READ that comes soon finds there.  May block.
 * False: it cannot be read. */
bool whole_decode(struct fs *fs, const struct whole *w);

#endif
