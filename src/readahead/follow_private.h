/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of follow share. */
#ifndef READAHEAD_FOLLOW_PRIVATE_H
#define READAHEAD_FOLLOW_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "readahead/follow.h"
#include "readahead/order/course.h"
#include "readahead/whole.h"

/* Tensors, or sets of files, that are followed at the same time. */
#define TRACKS 4
/* READs that were not looked at yet; more are forgotten. */
#define NOTES 1024

struct track {
	struct follow *f;
	struct files *_Atomic files; /* NULL: free; of a list: unused */
	uint32_t set;
	uint64_t first;        /* inode number of its node 0 */
	struct course *course; /* NULL: its order takes too much memory */
	struct order order;
	struct course_state state; /* as it was counted */
	uint64_t sample;           /* bytes of one */
	uint64_t used;             /* the last READ */
	_Atomic bool known;
};

struct follow {
	struct fs *fs;
	struct room *memory;
	readahead_fn *ask; /* NULL: nobody */
	void *ctx;
	const struct follow_order *order;
	pthread_t thread;
	bool started;
	uint64_t room; /* bytes for what the kernel has; 0: it is short */
	uint64_t keep_max, kept; /* bytes: at most, now */
	struct track track[TRACKS];
	uint64_t reads;
	bool found, warned; /* anything; that nothing was */
	unsigned n_asked;   /* files that are to be asked for */
	uint64_t asked[READAHEAD_FILES];

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	uint64_t note[NOTES];
	unsigned n_notes, next_note;
	bool stop;
	_Atomic bool stopping;
};

/* Inode number of sample i. */
uint64_t track_ino(const struct track *t, uint32_t sample);
/* Make something ready. */
enum follow_what {
	FOLLOW_NOTHING, /* is to be done */
	FOLLOW_MORE,
	FOLLOW_LATER /* there is no room now */
};
enum follow_what follow_work(struct track *t);
/* Have the last files asked for. */
void follow_flush(struct follow *f);
extern const struct course_ops follow_ops;

#endif
