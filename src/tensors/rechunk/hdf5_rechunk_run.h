/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks in the making: between those who fill them and those who write them. */
#ifndef TENSORS_RECHUNK_HDF5_RECHUNK_RUN_H
#define TENSORS_RECHUNK_HDF5_RECHUNK_RUN_H

#include <pthread.h>

#include "tensors/rechunk/hdf5_rechunk_private.h"

struct job;
struct run {
	struct rechunk *w;
	struct pool *pool;
	uint64_t pitch[RANK_MAX]; /* of a new chunk */
	uint64_t cell[RANK_MAX];  /* of jobs */
	uint64_t cost;            /* of a buffer */
	_Atomic bool failed;
	pthread_mutex_t lock; /* all below, and the lists of w */
	pthread_cond_t freed;
	struct making *first,
		*last;      /* tiles with chunks that have no place yet */
	uint64_t in_flight; /* bytes of buffers */
	uint64_t done;      /* bytes of the tensor */
	int code;
	struct error why;
};
/* A new chunk in the making. */
struct piece {
	struct making *tile;
	struct buf *buf;          /* decoded, then as it is stored */
	_Atomic uint64_t pending; /* cells that are not in it yet */
	_Atomic bool stored;      /* some of them are stored */
	struct rechunk_encoded is;
	/* With the lock: */
	bool ready; /* nothing has to be done but writing it, or not even that */
	struct piece *next;
};
/* A tile, until all of its chunks have gone. */
struct making {
	struct run *run;
	struct making *next;
	struct box box;                        /* elements */
	uint64_t first[RANK_MAX], n[RANK_MAX]; /* new chunks along each axis */
	uint64_t first_cell[RANK_MAX], cells[RANK_MAX];
	uint64_t n_pieces, n_jobs;
	uint64_t placed; /* with the lock: pieces whose turn was */
	struct piece *pieces;
	struct job *jobs;
	/* Jobs, chunks that are written, the line, and whoever makes them. */
	_Atomic uint64_t refs;
};
void rechunk_fail(struct run *r, int code, const struct error *why,
		  bool source);
bool rechunk_is_over(struct run *r);
void rechunk_tile_put(struct making *t);

/* hdf5_rechunk_line.c */
/* The chunks of this tile come behind those of all that were lined up. */
void rechunk_line_up(struct making *t);
/* The last cell is in it, is.chunk.number is set: encode it, and write what is next.  Any
 * thread. */
void rechunk_complete(struct piece *p);
/* What nobody will write any more; no thread is left. */
void rechunk_line_free(struct run *r);

#endif
