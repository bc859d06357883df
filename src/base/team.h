/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of one piece of work, on this thread and on others that are idle. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include <stddef.h>

#include "base/error.h"

/*
 * The process has one team: helpers beside whoever calls.  Without one, or while all
 * helpers are busy, the caller does everything himself.
 */

/* Have `threads` helpers (0: none); where there is a team already it is used as it is.
 * Each call that succeeds is to be followed by team_stop.  Not before a fork. */
int team_start(unsigned threads, struct error *err);
/* The last one ends the team; nobody may be in team_run then. */
void team_stop(void);
/* Threads that could work on parts at once: 1 without a team. */
unsigned team_size(void);

/* Part `i` of a piece of work; several at once, on any thread, which may call team_run.
 * 0 or -errno with a sentence. */
typedef int team_fn(void *ctx, size_t i, struct error *err);
/* Do parts 0 to n - 1, in about that order, and return when all are done: 0, or what the
 * first one (by number) that failed says.  Others are done all the same. */
int team_run(size_t n, team_fn *fn, void *ctx, struct error *err);

#endif
