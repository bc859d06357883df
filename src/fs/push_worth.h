/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files to push, by what became of those that were. */
#ifndef FS_PUSH_WORTH_H
#define FS_PUSH_WORTH_H

#include <stdbool.h>
#include <stdint.h>

enum push_kind {
	PUSH_NEAR,  /* a neighbour of what was decoded */
	PUSH_AHEAD, /* next in an order that a reader seems to follow */
	PUSH_KNOWN, /* somebody said that it will be read */
	PUSH_KINDS
};
struct push_worth;
struct push_worth *push_worth_new(void);
void push_worth_free(struct push_worth *w);

/* Is it time for a guess of this kind?  When few were right, seldom. */
bool push_worth_try(struct push_worth *w, enum push_kind kind);
enum push_verdict {
	PUSH_IT,
	PUSH_HOLD, /* not this one: whether it is read tells about the others */
	PUSH_SEEN, /* the kernel was given it, or has read it */
	PUSH_FULL  /* `room` bytes were pushed and may be waiting to be read */
};
enum push_verdict push_worth_ask(struct push_worth *w, enum push_kind kind,
				 uint64_t ino, uint64_t size, uint64_t room);
/* Was it pushed, as far as that is remembered?  Pushed or read? */
bool push_worth_has(struct push_worth *w, uint64_t ino);
bool push_worth_seen(struct push_worth *w, uint64_t ino);
/* Leave this one for the reader to ask for, who then shows that he is here. */
void push_worth_hold(struct push_worth *w, enum push_kind kind, uint64_t ino);
/* So many bytes of a file that PUSH_IT was said of are with the kernel. */
void push_worth_pushed(struct push_worth *w, enum push_kind kind,
		       uint64_t size);
/* It was to be pushed, and was not. */
void push_worth_forget(struct push_worth *w, uint64_t ino);
/* The kernel does not know the inode, so nobody is about to read it. */
void push_worth_unknown(struct push_worth *w, enum push_kind kind);
/* There was a READ from the beginning of it. */
void push_worth_read(struct push_worth *w, uint64_t ino);

#endif
