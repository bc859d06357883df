/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of backing files; for handles.c and handles_table.c only. */
#ifndef EXTENT_HANDLES_PRIVATE_H
#define EXTENT_HANDLES_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/vec.h"
#include "extent/file.h"
#include "extent/guard.h"
#include "extent/handles.h"
#include "extent/paths.h"

#define NONE PATHS_NONE

struct part;
struct file {
	struct identity id;
	int fd; /* -1: closed */
	uint32_t pins;
	uint32_t newer, older; /* neighbours on the list of idle files */
	uint32_t looked;       /* when the path was last looked at, in ms */
	bool known;            /* id was learnt, or is expected */
	bool opened;           /* the file was open once */
	bool doubtful;         /* the last look failed: look again at once */
	bool kept;             /* no path leads to it: it stays open */
	/* A writer appends while all of these are set in the byte at `mark`; 0: no
	 * writer is known. */
	unsigned char mark_bits;
	uint64_t mark;
	struct part *part; /* NULL: all of the file */
	struct joined
		*joined; /* not NULL: several others, and no file of its own */
};

/* Files that are one. */
struct joined {
	unsigned n;
	struct handles_piece piece[];
};

/* A piece of a file that is a row of its own. */
struct part {
	uint64_t pos, size, tag;
	bool tagged;
	char path[]; /* of the whole */
};

struct handles {
	pthread_mutex_t lock; /* guards all below */
	struct paths paths;
	vec(struct file) files; /* row by row with paths */
	uint32_t oldest, newest;
	unsigned open_now, limit;
	int cwd;            /* where relative paths begin */
	struct guard guard; /* set before there are threads */
	/* Any row is several files; most tables have none, and reading is spared to look. */
	_Atomic bool any_joined; /* without the lock */
};

#endif
