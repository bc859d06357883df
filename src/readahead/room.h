/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells how much memory may be filled ahead of readers. */
#ifndef READAHEAD_ROOM_H
#define READAHEAD_ROOM_H

#include <stdint.h>

/* Return how many bytes of memory are available now, and set *total to those of all
 * memory. */
typedef uint64_t room_memory_fn(void *ctx, uint64_t *total);
struct room;
/* If `memory` is NULL, the memory of the machine and the control group is measured.
 * Returns NULL if memory is short. */
struct room *room_new(room_memory_fn *memory, void *ctx);
void room_free(struct room *r);
/* Return how many bytes of page cache may be filled with files that are not read yet: a
 * share of what the machine and the control group have available; 0 if memory is short.
 * Never blocks. */
uint64_t room_left(struct room *r);

#endif
