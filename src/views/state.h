/* SPDX-License-Identifier: BSD-2-Clause */
/* What the views of a tensor keep from one request to the next. */
#ifndef VIEWS_STATE_H
#define VIEWS_STATE_H

#include "tensor/tensor.h"

struct bundle;
struct epochs;
struct lists;
struct lookups;
struct shards_sized;
struct zarr_places;

/* Made and freed with the files of a tensor (views/files.c).  A pointer is NULL until a
 * request needs what it points to, and does not change afterwards. */
struct view_state {
	struct tensor *tensor;      /* the tensor that has it as `views` */
	struct chunk_set documents; /* info.json and other generated files */
	/* Bytes of array.h5 before its data; 0: not known yet. */
	_Atomic uint64_t h5_front;
	/* Epochs and lists of the samples, names of slices that were looked up,
	 * tensor.safetensors, and shards/ of samples that differ in size. */
	_Atomic(struct epochs *) epochs;
	_Atomic(struct lists *) lists;
	_Atomic(struct lookups *) slices;
	_Atomic(struct bundle *) bundle;
	_Atomic(struct shards_sized *) sized;
	/* For Zarr: the chunks of part 0 as stored, an enum zarr_mode, and the places
	 * of chunks in a sparse grid. */
	struct chunk_set stored_chunks;
	_Atomic int zarr;
	_Atomic(struct zarr_places *) zarr_places;
};
/* Set and return t->views; NULL without memory. */
struct view_state *view_state_new(struct tensor *t);
/* Free t->views, unless it is NULL. */
void view_state_free(struct tensor *t);

#endif
