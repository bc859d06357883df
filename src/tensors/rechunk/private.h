/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files that rechunk. */
#ifndef TENSORS_RECHUNK_PRIVATE_H
#define TENSORS_RECHUNK_PRIVATE_H

#include "base/vec.h"
#include "pack/out.h"
#include "tensors/build.h"
#include "tensors/rechunk/hdf5_rechunk.h"
#include "tensors/rechunk/cells.h"
#include "tensors/rechunk/written.h"
#include "tensors/rest.h"

/* So many objects may kill the process that copies them. */
#define RECHUNK_DEADLY 64
/* What is done, once everything was decided. */
struct rechunk {
	const struct rechunk_options *o;
	struct tensor *t;
	struct grid grid; /* of the new chunks */
	struct rechunk_cells cells;
	struct rechunk_written written;
	uint64_t most_chunks; /* new ones that may be written */
	struct pipeline pipeline;
	uint64_t max[RANK_MAX]; /* what the shape may grow to */
	bool grows;
	struct fill
		fill; /* of the new dataset; width 0: none that it could have */
	struct rechunk_plan plan;
	uint64_t room; /* bytes that chunks in the making may take together */
	unsigned threads;
	bool rest; /* the other objects of the source's file come along */
	uint64_t user_block; /* bytes in front of the HDF5 file */
	/* Shared with the process that copies them: what it does; and what killed one. */
	char *trail;
	char *deadly[RECHUNK_DEADLY];
	unsigned n_deadly;
	struct out *out;
	struct build *build;
	/* What came of it. */
	vec(struct build_chunk) chunks;
	uint64_t unwritten, chunk_bytes;
	uint64_t others; /* datasets that came along */
	uint64_t lost;   /* what did not */
	bool of_source;
};

/* Memory that a new chunk takes while it is made, before it is encoded. */
uint64_t rechunk_cost(const struct rechunk *w);
/* Make all new chunks, put them, list them. */
int rechunk_run(struct rechunk *w, struct error *err);

/* file.c: what a process of its own says, for libhdf5 reads the source there,
 * which may be damaged. */
struct rechunk_answer {
	int code;
	char text[sizeof((struct error){0}.text)];
	uint64_t user_block;
	struct rest_found found;
};
typedef int rechunk_task(struct rechunk *w, const char *name,
			 struct rechunk_answer *a, struct error *err);
int rechunk_apart(struct rechunk *w, rechunk_task *task, const char *name,
		  struct rechunk_answer *a, struct error *err);

void rechunk_apart_free(struct rechunk *w);

/* A file with it alone; attributes that are not in it are a->found.lost. */
rechunk_task rechunk_make_alone;

/* The other objects of the source's file. */
bool rechunk_has_rest(const struct rechunk *w);
/* Can all of them be copied? */
int rechunk_look_rest(struct rechunk *w, struct error *err);
/* Before any chunk: what is in front of the file. */
int rechunk_put_user_block(struct rechunk *w, struct error *err);
rechunk_task rechunk_make_rest;
int rechunk_judge_rest(struct rechunk *w, const struct rest_found *found,
		       struct error *err);
/* What there is to say when the output has its name. */
void rechunk_note_rest(const struct rechunk *w, const struct rest_found *found);

/* How far the dataset may grow; false: no further than it is. */
bool rechunk_max_shape(const struct tensor *t, uint64_t *max);
/* The path of the dataset in its file. */
const char *rechunk_object(const struct tensor *t);

#endif
