/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files follow*.c share. */
#ifndef READAHEAD_FOLLOW_PRIVATE_H
#define READAHEAD_FOLLOW_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "readahead/follow.h"
#include "readahead/order/course.h"
#include "readahead/whole.h"

/* Most tensors, or sets of files, that are followed at the same time. */
#define TRACKS 4
/* Most READs that wait for the thread; more are forgotten. */
#define NOTES 1024

struct track {
	struct follow *f;
	/* NULL: the track is free, or follows a list. */
	struct files *_Atomic files;
	uint32_t set;
	uint64_t first;        /* inode number of node 0 of `files` */
	struct course *course; /* NULL: the order takes too much memory */
	struct order order;
	/* The state whose events are in the counters already. */
	struct course_state state;
	uint64_t sample; /* bytes of one sample */
	uint64_t used;   /* value of f->reads at the last READ */
	_Atomic bool known;
};

struct follow {
	struct fs *fs;
	struct room *memory;
	readahead_fn *ask; /* NULL: the kernel cannot be asked */
	void *ctx;
	const struct follow_order *order;
	pthread_t thread;
	bool started;
	/* Bytes of page cache that may be filled; 0: memory is short. */
	uint64_t room;
	/* Bytes kept in the cache: most, and now. */
	uint64_t keep_max, kept;
	struct track track[TRACKS];
	uint64_t reads;
	/* A place in the order was found; a warning was given that none was. */
	bool found, warned;
	unsigned n_asked; /* files that the kernel is to be asked for */
	uint64_t asked[READAHEAD_FILES];

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t wake;
	uint64_t note[NOTES];
	unsigned n_notes, next_note;
	bool stop;
	_Atomic bool stopping;
};

/* Return the inode number of a sample. */
uint64_t track_ino(const struct track *t, uint32_t sample);
/* What follow_work did. */
enum follow_what {
	FOLLOW_NOTHING, /* nothing is to be made ready */
	FOLLOW_MORE,
	FOLLOW_LATER /* there is no room now: try again later */
};
enum follow_what follow_work(struct track *t);
/* Ask the kernel for the files collected so far. */
void follow_flush(struct follow *f);
extern const struct course_ops follow_ops;

#endif
