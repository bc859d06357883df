/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory guesses may fill, looked at now and then. */
#ifndef FS_PUSH_ROOM_H
#define FS_PUSH_ROOM_H

#include "fs/push.h"

struct push_room;
struct push_room *push_room_new(push_memory_fn *memory, void *ctx);
void push_room_free(struct push_room *r);
/* Bytes that may be pushed and not known to be read: a share of what the machine and
 * the control group could give; 0: memory is short. */
uint64_t push_room(struct push_room *r);

#endif
