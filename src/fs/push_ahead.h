/* SPDX-License-Identifier: BSD-2-Clause */
/* Notice who reads file after file, and say which ones come next. */
#ifndef FS_PUSH_AHEAD_H
#define FS_PUSH_AHEAD_H

#include "fs/push_worth.h"

struct push_ahead;
struct push_ahead *push_ahead_new(void);
void push_ahead_free(struct push_ahead *a);

struct push_range {
	uint64_t first;
	int64_t step;
	unsigned n;
	unsigned mark; /* this one is left for the reader; n: none is */
};
/* A file was read from its beginning.  True: *out is probably next.  Never blocks. */
bool push_ahead_note(struct push_ahead *a, struct push_worth *w, uint64_t ino,
		     struct push_range *out);

#endif
