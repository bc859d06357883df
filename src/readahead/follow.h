/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows a known order of reads, and makes the files ready that will be read next. */
#ifndef READAHEAD_FOLLOW_H
#define READAHEAD_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "readahead/order/spec.h"
#include "readahead/readahead.h"
#include "readahead/room.h"

struct fs;
/* The order to follow: samples as the option order= says; or, with spec.file, a list of
 * files: file k of the order has the inode number ino[list[k]].  `ino` ascends without
 * duplicates. */
struct follow_order {
	struct order_spec spec;
	uint64_t *ino;
	uint32_t n_inos;
	uint32_t *list;
	uint32_t length;
};
/* Free the arrays of *o. */
void follow_order_free(struct follow_order *o);

/*
 * A reader of samples in that order finds them in the kernel's page cache, which `ask`
 * has filled, or in the daemon's cache, where they are kept until a READ asks for them.
 * `ask` is NULL if the kernel cannot be asked.  All arguments are borrowed.  Starts a
 * thread.  An fs may have one follow at a time.
 */
struct follow;
int follow_new(struct follow **out, struct fs *fs, const struct follow_order *o,
	       struct room *room, readahead_fn *ask, void *ctx,
	       struct error *err);
/* Note that a READ of `ino` by a reader was answered.  Returns true if that READ was
 * expected.  Never blocks for long. */
bool follow_note(struct follow *f, uint64_t ino);
/* follow_stop makes no more files ready; follow_free also ends the thread and frees `f`.
 * `f` may be NULL. */
void follow_stop(struct follow *f);
void follow_free(struct follow *f);

#endif
