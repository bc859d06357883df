/* SPDX-License-Identifier: BSD-2-Clause */
/* Give the kernel whole small files before they are asked for. */
#ifndef FS_PUSH_H
#define FS_PUSH_H

#include "fs/fs.h"

struct push;
/* Put bytes of a file into the kernel's page cache: 0; -ENOENT: the kernel does not
 * know the inode; -ENOMEM; another -errno: there will be nothing to put to any more
 * (-EOWNERDEAD: the process that watches over storing is gone).
 * Called by one thread, always the same.  May block for as long as a READ of the file
 * is under way. */
typedef int push_store_fn(void *ctx, uint64_t ino, uint64_t off,
			  const struct iovec *iov, unsigned niov);
/* Bytes of memory that could be had now, and in all. */
typedef uint64_t push_memory_fn(void *ctx, uint64_t *total);
/* A READ of `ino` was answered.  True: whoever reads is on a course that is known,
 * so there is nothing to guess. */
typedef bool push_first_fn(void *ctx, uint64_t ino);

struct push_options {
	unsigned threads;  /* that decode and gather; 0: as there are cores */
	uint64_t file_max; /* larger files are not pushed; 0: PUSH_FILE_MAX */
	push_memory_fn
		*memory; /* NULL: the machine's and the control group's */
	void *memory_ctx;
};
/* A guess: from here on, a READ costs little beside its bytes. */
#define PUSH_FILE_MAX (UINT64_C(256) << 10)

/* Starts its threads.  Borrows `fs`; `store` and `ctx` are called until push_free. */
int push_new(struct push **out, struct fs *fs, const struct push_options *o,
	     push_store_fn *store, void *ctx, struct error *err);
/* Who has the first word about READs; before the first of them. */
void push_set_first(struct push *p, push_first_fn *first, void *ctx);
/* Whole files that will be wanted for certain, whose bytes somebody has already (he keeps
 * the references).  Nothing is held back of these, and how far ahead is up to him. */
#define PUSH_BATCH 32
struct push_batch {
	struct push *p;
	unsigned n;
	uint64_t ino[PUSH_BATCH];
	struct buf *bytes[PUSH_BATCH];
	/* As push_store_fn says; -EAGAIN: memory is short. */
	int result[PUSH_BATCH];
	/* Called by the thread that stores, or by push_batch. */
	void (*done)(struct push_batch *b);
};
/* Have them stored; waits while many are under way.  `done` is called in any case, at the
 * latest by push_free. */
void push_batch(struct push *p, struct push_batch *b);
/* Bytes that may have been given to the kernel and not be read yet, as memory is now; 0: it
 * is short. */
uint64_t push_may_fill(const struct push *p);
/* Files that are larger are not pushed. */
uint64_t push_file_max(const struct push *p);
/* A READ was answered by `r` (of which the bytes may be released); `waited`: it had to
 * decode.  Never blocks.  `p` may be NULL. */
void push_note(struct push *p, uint64_t ino, uint64_t off,
	       const struct reply *r, bool waited);
/* Begin nothing any more.  What is being stored then may go on for as long as a READ
 * is not answered: push_is_still says when it has come to an end. */
void push_stop(struct push *p);
bool push_is_still(const struct push *p);
/* Wait until nothing is queued or under way; for tests. */
void push_drain(struct push *p);
/* Stops its threads; NULL is allowed. */
void push_free(struct push *p);

#endif
