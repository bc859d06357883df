/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of guess share. */
#ifndef READAHEAD_GUESS_PRIVATE_H
#define READAHEAD_GUESS_PRIVATE_H

#include <stdatomic.h>

#include "base/pool.h"
#include "readahead/guess.h"
#include "readahead/guess_stream.h"
#include "readahead/idle.h"
#include "readahead/whole.h"

/* Chunks whose READs are counted at a time. */
#define GUESS_CHUNKS 16384
/* Bytes of one chunk set: `others` are of all chunks that were begun, without the file that
 * was asked for first in each; `read` is the part of `others` that was asked for. */
struct guess_account {
	_Atomic uint64_t others, read;
};
#define GUESS_ACCOUNTS 64
struct guess {
	struct fs *fs;
	struct room *room;
	readahead_fn *ask;
	void *ctx;
	struct streams *streams;
	struct pool *pool; /* one thread: it alone may wait for the helper */
	_Atomic bool stop;
	struct idle *idle;
	/* By a hash of the chunk: the rest of the hash, and what guess_near.c counts. */
	_Atomic uint64_t chunks[GUESS_CHUNKS];
	struct guess_account accounts[GUESS_ACCOUNTS]; /* by the set's number */
};

/* Files to be asked for. */
struct guess_list {
	struct guess *guess;
	unsigned n;
	uint64_t ino[READAHEAD_FILES];
};
/* False: no more of them. */
bool guess_add(struct guess_list *l, uint64_t ino);
void guess_flush(struct guess_list *l);

/* Counts a READ that ended a file.  Is it time for its neighbours? */
enum guess_due {
	GUESS_NOT,
	GUESS_IDLE, /* where a processor is idle */
	GUESS_NOW
};
enum guess_due guess_near_note(struct guess *g, const struct reply *r,
			       bool waited);
/* They are going to be asked for. */
void guess_near_begin(struct guess *g, const struct reply *r);
/* Ask for the neighbours of a file. */
void guess_near(struct guess *g, uint64_t ino);

#endif
