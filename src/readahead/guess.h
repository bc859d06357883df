/* SPDX-License-Identifier: BSD-2-Clause */
/* Guesses which small files are read next, and has them read ahead. */
/*
 * Three kinds of files are read ahead: the other files of a chunk that had to be decoded
 * twice; while a processor is idle (idle.c), the next files of a reader that reads file
 * after file, four or more at the same distance; and, while a processor is idle, the
 * other files of a chunk that readers come back to, once readers have asked for an
 * eighth of the bytes of such files (guess_near.c).  Nothing is read ahead while memory
 * is short.
 */
#ifndef READAHEAD_GUESS_H
#define READAHEAD_GUESS_H

#include "fs/fs.h"
#include "readahead/readahead.h"
#include "readahead/room.h"

/* In bytes.  Larger files are not guessed: for them a READ costs little compared with
 * its bytes. */
#define GUESS_FILE_MAX (UINT64_C(256) << 10)

struct guess;
/* Start guessing, with a thread of its own.  All arguments are borrowed; `ask` is called
 * with `ctx` until guess_free.  Returns 0 or -errno. */
int guess_new(struct guess **out, struct fs *fs, struct room *room,
	      readahead_fn *ask, void *ctx, struct error *err);
/* Note that a READ by thread `reader` was answered by `r`, whose bytes may be released
 * already; `waited`: a chunk was decoded for it.  Never blocks. */
void guess_note(struct guess *g, pid_t reader, uint64_t ino, uint64_t off,
		const struct reply *r, bool waited);
/* Return true if this file is probably one of several that a reader reads in order.
 * Takes no lock. */
bool guess_is_in_order(const struct guess *g, uint64_t ino);
/* For tests: see idle_set_cores. */
void guess_set_cores(struct guess *g, unsigned cores);
/* For tests: wait until no job is queued or running. */
void guess_drain(struct guess *g);
/* Stop the thread and free `g`.  The call of `ask` in which the thread may wait must be
 * able to end.  `g` may be NULL. */
void guess_free(struct guess *g);

#endif
