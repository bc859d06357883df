/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the table of backing files; for handles*.c only. */
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
	uint32_t newer, older; /* neighbours in the list of idle files */
	uint32_t looked;       /* when the path was last examined, in ms */
	/* `id` was learnt at an open or declared before one. */
	bool known;
	bool opened; /* the file was opened at least once */
	/* The last check of the path failed: check it at the next get. */
	bool doubtful;
	bool kept; /* it has no path: it stays open */
	/* Another process appends to the file while all of these bits are set in the
	 * byte at offset `mark`; 0 if no such process is known. */
	unsigned char mark_bits;
	uint64_t mark;
	struct part *part; /* NULL: the row is a whole file */
	/* Not NULL: the row consists of other rows, and has no file of its own. */
	struct joined *joined;
};

/* The pieces of a row that consists of several files, in order of `begin`. */
struct joined {
	unsigned n;
	struct handles_piece piece[];
};

/* A piece of a file that is a row of its own: `size` bytes from offset `pos`. */
struct part {
	uint64_t pos, size, tag;
	bool tagged;
	char path[]; /* of the whole file */
};

struct handles {
	pthread_mutex_t lock; /* guards all below */
	struct paths paths;
	vec(struct file) files; /* file i has path i */
	uint32_t oldest, newest;
	unsigned open_now, limit;
	/* The directory that relative paths begin in; AT_FDCWD: none was kept. */
	int cwd;
	struct guard guard; /* set before there are threads */
	/* At least one row consists of several files.  Most tables have none, and their
	 * reads need not look. */
	_Atomic bool any_joined; /* read without the lock */
};

#endif
