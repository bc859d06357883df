/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files guess*.c share. */
#ifndef READAHEAD_GUESS_PRIVATE_H
#define READAHEAD_GUESS_PRIVATE_H

#include <stdatomic.h>

#include "base/pool.h"
#include "readahead/guess.h"
#include "readahead/guess_stream.h"
#include "readahead/idle.h"
#include "readahead/whole.h"

/* How many chunks have their READs counted at a time. */
#define GUESS_CHUNKS 16384
/* How many neighbours are read, by bytes, in one chunk set.  `others` counts the bytes
 * of all chunks that were begun, without the file that was asked for first in each;
 * `read` is the part of `others` that was asked for. */
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
	/* One thread, the only one that may wait for the helper. */
	struct pool *pool;
	_Atomic bool stop;
	struct idle *idle;
	/* Found by a hash of the chunk: the other bits of the hash, and what
	 * guess_near.c counts. */
	_Atomic uint64_t chunks[GUESS_CHUNKS];
	/* Found by the set's number. */
	struct guess_account accounts[GUESS_ACCOUNTS];
};

/* Files that the kernel is to be asked for, collected until there are
 * READAHEAD_FILES. */
struct guess_list {
	struct guess *guess;
	unsigned n;
	uint64_t ino[READAHEAD_FILES];
};
/* Add a file to the list.  Returns false if no more files should be added. */
bool guess_add(struct guess_list *l, uint64_t ino);
void guess_flush(struct guess_list *l);

/* Whether it is time to read the neighbours of a file ahead. */
enum guess_due {
	GUESS_NOT,
	GUESS_IDLE, /* if a processor is idle */
	GUESS_NOW
};
enum guess_due guess_near_note(struct guess *g, const struct reply *r,
			       bool waited);
/* Note that the neighbours of a file are going to be asked for. */
void guess_near_begin(struct guess *g, const struct reply *r);
/* Ask for the neighbours of a file. */
void guess_near(struct guess *g, uint64_t ino);

#endif
