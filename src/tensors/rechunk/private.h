/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of rechunk share. */
#ifndef TENSORS_RECHUNK_PRIVATE_H
#define TENSORS_RECHUNK_PRIVATE_H

#include "base/vec.h"
#include "pack/out.h"
#include "tensors/build.h"
#include "tensors/rechunk/hdf5_rechunk.h"
#include "tensors/rechunk/cells.h"
#include "tensors/rechunk/written.h"
#include "tensors/rest.h"

/* Steps that may crash the child that copies other objects, at most. */
#define RECHUNK_DEADLY 64
/* A rechunk: all that was decided, and the results. */
struct rechunk {
	const struct rechunk_options *o;
	struct tensor *t;
	struct grid grid; /* grid of the new chunks */
	struct rechunk_cells cells;
	struct rechunk_written written;
	uint64_t most_chunks; /* new chunks that may be written, at most */
	struct pipeline pipeline;
	uint64_t max[RANK_MAX]; /* what the shape may grow to */
	bool grows;
	/* Fill value of the new dataset; width 0: it cannot have one. */
	struct fill fill;
	struct rechunk_plan plan;
	uint64_t room; /* bytes for chunks in the making */
	unsigned threads;
	bool rest;           /* copy the other objects of the source's file */
	uint64_t user_block; /* bytes in front of the superblock */
	/* Shared with the child that copies other objects: its current step, and the
	 * steps that killed one. */
	char *trail;
	char *deadly[RECHUNK_DEADLY];
	unsigned n_deadly;
	struct out *out;
	struct build *build;
	/* Results: */
	vec(struct build_chunk) chunks;
	uint64_t unwritten, chunk_bytes;
	uint64_t others; /* other datasets that were copied */
	uint64_t lost;   /* objects that were not */
	bool of_source;
};

/* Bytes of memory that a new chunk takes before it is encoded. */
uint64_t rechunk_cost(const struct rechunk *w);
/* Make and write all new chunks, and list them in w->chunks. */
int rechunk_run(struct rechunk *w, struct error *err);

/* file.c: the answer of a child, in which libhdf5 reads the source, which may be
 * damaged. */
struct rechunk_answer {
	int code;
	char text[sizeof((struct error){0}.text)];
	uint64_t user_block;
	struct rest_found found;
};
/* What the child does.  Returns 0 or -errno. */
typedef int rechunk_task(struct rechunk *w, const char *name,
			 struct rechunk_answer *a, struct error *err);
/* Run a task in a child.  Return its result, or -EBADMSG if the child died. */
int rechunk_apart(struct rechunk *w, rechunk_task *task, const char *name,
		  struct rechunk_answer *a, struct error *err);

void rechunk_apart_free(struct rechunk *w);

/* Make a file with the dataset alone; attributes that are left out are listed in
 * a->found.lost. */
rechunk_task rechunk_make_alone;

/* Are the other objects of the source's file to be copied? */
bool rechunk_has_rest(const struct rechunk *w);
/* Check whether all of them can be copied. */
int rechunk_look_rest(struct rechunk *w, struct error *err);
/* Copy the user block.  To be called before any chunk is written. */
int rechunk_put_user_block(struct rechunk *w, struct error *err);
/* Make the file around the new chunks, with the other objects. */
rechunk_task rechunk_make_rest;
/* Return -ENOTSUP if objects are lost and the user did not allow that. */
int rechunk_judge_rest(struct rechunk *w, const struct rest_found *found,
		       struct error *err);
/* Report what was lost, when the output has its name. */
void rechunk_note_rest(const struct rechunk *w, const struct rest_found *found);

/* Set `max` to the shape that the dataset may grow to.  Return false if it cannot
 * grow. */
bool rechunk_max_shape(const struct tensor *t, uint64_t *max);
/* The path of the dataset in its file. */
const char *rechunk_object(const struct tensor *t);

#endif
