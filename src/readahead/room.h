/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory may be filled ahead of readers, looked at now and then. */
#ifndef READAHEAD_ROOM_H
#define READAHEAD_ROOM_H

#include <stdint.h>

/* Bytes of memory that could be had now, and in all. */
typedef uint64_t room_memory_fn(void *ctx, uint64_t *total);
struct room;
/* `memory` NULL: the machine's and the control group's.  NULL: no memory for it. */
struct room *room_new(room_memory_fn *memory, void *ctx);
void room_free(struct room *r);
/* Bytes of page cache that may be filled with what is not read yet: a share of what the
 * machine and the control group could give; 0: memory is short.  Never blocks. */
uint64_t room_left(struct room *r);

#endif
