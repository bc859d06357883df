/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker threads that take jobs from one bounded queue. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>

#include "base/error.h"

struct pool;
typedef void pool_fn(void *arg);

/* Start `threads` workers (>= 1) named `name`, with room for `depth` jobs.  Return 0, or
 * -errno with a sentence. */
int pool_new(struct pool **out, const char *name, unsigned threads,
	     unsigned depth, struct error *err);
/* Queue a job; blocks while the queue is full.  Must not be called from a job. */
void pool_submit(struct pool *p, pool_fn *fn, void *arg);
/* Queue a job unless the queue is full.  Return true if it was queued.  Never blocks. */
bool pool_try_submit(struct pool *p, pool_fn *fn, void *arg);
/* Wait until the queue is empty and every worker is idle. */
void pool_drain(struct pool *p);
/* Run the queued jobs, join the workers and free the pool; `p` may be NULL. */
void pool_free(struct pool *p);

#endif
