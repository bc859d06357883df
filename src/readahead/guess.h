/* SPDX-License-Identifier: BSD-2-Clause */
/* Guess by what is read which small files are read next, and have them read ahead. */
/*
 * Three kinds of files are read ahead: the other files of a chunk that had to be decoded
 * twice; while a processor is idle (idle.c), the next files of a reader that reads file after
 * file, four or more with the same distance; and, while one is idle, the other files of a
 * chunk that readers come back to, once readers have asked for an eighth of such files
 * (guess_near.c).  Nothing is read ahead while memory is short.
 */
#ifndef READAHEAD_GUESS_H
#define READAHEAD_GUESS_H

#include "fs/fs.h"
#include "readahead/readahead.h"
#include "readahead/room.h"

/* Bytes.  Larger files are not guessed at: for these a READ costs little beside its
 * bytes. */
#define GUESS_FILE_MAX (UINT64_C(256) << 10)

struct guess;
/* Starts a thread.  Borrows all; `ask` and `ctx` are called until guess_free. */
int guess_new(struct guess **out, struct fs *fs, struct room *room,
	      readahead_fn *ask, void *ctx, struct error *err);
/* A READ by thread `reader` was answered by `r` (of which the bytes may be released);
 * `waited`: it had to decode.  Never blocks. */
void guess_note(struct guess *g, pid_t reader, uint64_t ino, uint64_t off,
		const struct reply *r, bool waited);
/* Return true if this file is probably one of several that a reader reads in order.
 * Takes no lock. */
bool guess_is_in_order(const struct guess *g, uint64_t ino);
/* As idle_set_cores, for tests. */
void guess_set_cores(struct guess *g, unsigned cores);
/* Wait until nothing is queued or under way; for tests. */
void guess_drain(struct guess *g);
/* Stops its thread; what that waits for has to end.  NULL is allowed. */
void guess_free(struct guess *g);

#endif
