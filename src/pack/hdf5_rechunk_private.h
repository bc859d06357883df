/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files that rechunk. */
#ifndef PACK_HDF5_RECHUNK_PRIVATE_H
#define PACK_HDF5_RECHUNK_PRIVATE_H

#include <xxhash.h>

#include "base/vec.h"
#include "pack/hdf5_build.h"
#include "pack/hdf5_rechunk.h"
#include "pack/out.h"
#include "pack/rechunk_cells.h"
#include "pack/rechunk_written.h"

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
	struct out *out;
	struct build *build;
	/* What came of it. */
	vec(struct build_chunk) chunks;
	uint64_t unwritten, chunk_bytes;
	bool of_source;
};

/* Memory that a new chunk takes while it is made, before it is encoded. */
uint64_t rechunk_cost(const struct rechunk *w);
/* The pattern over and over. */
void rechunk_fill(unsigned char *to, size_t n, const struct fill *f);
/* A new chunk as it is stored. */
struct rechunk_encoded {
	struct build_chunk chunk;
	XXH128_hash_t hash; /* of what is in it, if that is compared again */
};
/* The chunk in *data becomes what is stored of it: chunk.len bytes of *data, which may be
 * another buffer then.  Any thread. */
int rechunk_encode(const struct rechunk *w, struct buf **data,
		   struct rechunk_encoded *is, struct error *err);
/* To where it has its place; read again if that is wanted.  Any thread. */
int rechunk_write(struct rechunk *w, const void *stored,
		  const struct rechunk_encoded *is, struct error *err);
/* Make all new chunks, put them, list them. */
int rechunk_run(struct rechunk *w, struct error *err);
/* The file around them: type, shape, fill value, attributes.  In a process of its own:
 * libhdf5 reads the source there, which may be damaged.  *left_out is what to note, or
 * empty. */
int rechunk_finish(struct rechunk *w, const char *dataset, char *left_out,
		   size_t n, struct error *err);
/* How far the dataset may grow; false: no further than it is. */
bool rechunk_max_shape(const struct tensor *t, uint64_t *max);
/* The path of the dataset in its file. */
const char *rechunk_object(const struct tensor *t);

#endif
