/* SPDX-License-Identifier: BSD-2-Clause */
/* Make ready what will be read next, in an order that is known. */
#ifndef READAHEAD_FOLLOW_H
#define READAHEAD_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "readahead/order/spec.h"
#include "readahead/readahead.h"
#include "readahead/room.h"

struct fs;
/* Samples as option order= says; or, with spec.file, these files: file k of the order has
 * the inode number ino[list[k]].  `ino` ascends, each is there once. */
struct follow_order {
	struct order_spec spec;
	uint64_t *ino;
	uint32_t n_inos;
	uint32_t *list;
	uint32_t length;
};
/* Frees what it points to. */
void follow_order_free(struct follow_order *o);

/*
 * Whoever reads samples in that order finds them in the kernel's page cache, which `ask`
 * has filled (NULL: that is not possible), or kept here until he asks.  Borrows all; starts
 * a thread.  One follow at a time for an fs.
 */
struct follow;
int follow_new(struct follow **out, struct fs *fs, const struct follow_order *o,
	       struct room *room, readahead_fn *ask, void *ctx,
	       struct error *err);
/* A READ of `ino` by a reader was answered.  True: that was to be expected.  Never blocks
 * for long. */
bool follow_note(struct follow *f, uint64_t ino);
/* Each may be given NULL.  No more is done; the thread has ended and all is gone. */
void follow_stop(struct follow *f);
void follow_free(struct follow *f);

#endif
