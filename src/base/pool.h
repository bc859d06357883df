/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker threads that take jobs from one bounded queue. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>

#include "base/error.h"

struct pool;
typedef void pool_fn(void *arg);

/* Start `threads` workers (>= 1) named `name`, with room for `depth` jobs. */
int pool_new(struct pool **out, const char *name, unsigned threads,
	     unsigned depth, struct error *err);
/* Queue a job; blocks while the queue is full.  Not from inside a job. */
void pool_submit(struct pool *p, pool_fn *fn, void *arg);
/* Queue a job unless the queue is full; true when it was taken. */
bool pool_try_submit(struct pool *p, pool_fn *fn, void *arg);
/* Wait until the queue is empty and every worker idle. */
void pool_drain(struct pool *p);
/* Finish what is queued, join the workers, free; `p` may be NULL. */
void pool_free(struct pool *p);

#endif
