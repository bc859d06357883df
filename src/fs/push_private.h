/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of push share. */
#ifndef FS_PUSH_PRIVATE_H
#define FS_PUSH_PRIVATE_H

#include <stdatomic.h>

#include "base/pool.h"
#include "fs/push.h"
#include "fs/push_ahead.h"
#include "fs/push_room.h"
#include "fs/push_worth.h"
#include "fs/whole.h"

/* Bytes of chunks that were begun, without the first file of each that was read; and those
 * of them that were read. */
struct push_account {
	_Atomic uint64_t others, read;
};
#define PUSH_ACCOUNTS 64
#define PUSH_CHUNKS 16384
struct push {
	struct fs *fs;
	struct push_options options;
	push_store_fn *store;
	void *ctx;
	push_first_fn *first; /* NULL: nobody */
	void *first_ctx;
	struct push_room *room;
	struct push_worth *worth;
	struct push_ahead *ahead;
	struct pool *finders; /* decode and gather */
	struct pool *storer;  /* one thread: it alone may wait for a reader */
	_Atomic bool stop;
	_Atomic bool storing;
	_Atomic int failed; /* -errno that nobody was told of */
	/* Chunks whose files are being read, by their hash, and how many were. */
	_Atomic uint64_t chunks[PUSH_CHUNKS];
	/* Of chunk sets, by their number. */
	struct push_account accounts[PUSH_ACCOUNTS];
	_Atomic unsigned barren; /* walks in a row that found nothing */
	_Atomic unsigned turn;
};

/* May files be pushed at all now? */
bool push_may(struct push *p);
/* Read one file into *parcel (NULL: a new one), whose files are all of that kind, and
 * have full ones stored; waits for room in the queue. */
struct parcel;
void push_one(struct push *p, const struct whole *w, enum push_kind kind,
	      struct parcel **parcel);
/* Have the last one stored. */
void push_flush(struct push *p, struct parcel **parcel);
/* Is it time to look for neighbours of a file that was read to its end by `r`?
 * `waited`: for that a chunk was decoded. */
bool push_near_is_due(struct push *p, const struct reply *r, bool waited);
/* Push the neighbours of a file whose chunk was decoded; runs on a finder. */
void push_near(struct push *p, uint64_t ino);

#endif
