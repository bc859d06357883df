/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether a processor is idle. */
#ifndef READAHEAD_IDLE_H
#define READAHEAD_IDLE_H

#include <stdbool.h>
#include <sys/types.h>

struct idle;
/* Return NULL if memory is short. */
struct idle *idle_new(void);
void idle_free(struct idle *i);
/* Note that a READ of that thread was answered. */
void idle_note(struct idle *i, pid_t reader);
/* Return true if one of the processors that this process may use is probably idle.  Never
 * blocks. */
bool idle_now(struct idle *i);
/* For tests: there are `cores` processors, all of them in use. */
void idle_set_cores(struct idle *i, unsigned cores);

#endif
