/* SPDX-License-Identifier: BSD-2-Clause */
/* Run the parts of one piece of work on this thread and on others that are idle. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include <stddef.h>

#include "base/error.h"

/*
 * The process has one team of helper threads.  Without a team, or while all helpers are
 * busy, the calling thread does all parts itself.
 */

/* Start a team of `threads` helpers (0: no team).  If there is a team already, it is used
 * as it is.  Each call that succeeds must be followed by team_stop.  Do not call it
 * before a fork.  Return 0, or -errno with a sentence. */
int team_start(unsigned threads, struct error *err);
/* Undo one team_start; the last call ends the team.  No thread may be in team_run
 * then. */
void team_stop(void);
/* The number of threads that can work on parts at once: 1 without a team. */
unsigned team_size(void);

/* Do part `i` of a piece of work.  Several parts run at once, on any thread; a part may
 * call team_run.  Return 0, or -errno with a sentence. */
typedef int team_fn(void *ctx, size_t i, struct error *err);
/* Do parts 0 to n - 1, in about that order, and return when all are done: 0, or the error
 * of the first part, by number, that failed.  The other parts are done all the same. */
int team_run(size_t n, team_fn *fn, void *ctx, struct error *err);

#endif
