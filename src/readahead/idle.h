/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a processor idle?  Looked at now and then. */
#ifndef READAHEAD_IDLE_H
#define READAHEAD_IDLE_H

#include <stdbool.h>
#include <sys/types.h>

struct idle;
/* NULL: no memory for it. */
struct idle *idle_new(void);
void idle_free(struct idle *i);
/* A READ of that thread was answered. */
void idle_note(struct idle *i, pid_t reader);
/* Is one of the processors that this process may use probably idle?  Never blocks. */
bool idle_now(struct idle *i);
/* For tests: there are `cores` processors, all of them in use. */
void idle_set_cores(struct idle *i, unsigned cores);

#endif
