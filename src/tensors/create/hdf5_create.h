/* SPDX-License-Identifier: BSD-2-Clause */
/* Make the files of a distributed tensor: a main file, and parts to be filled. */
#ifndef TENSORS_CREATE_HDF5_CREATE_H
#define TENSORS_CREATE_HDF5_CREATE_H

#include <stdbool.h>
#include <stdint.h>

#include "pack/sink.h"
#include "tensor/grid.h"

/*
 * The layout is that of skerch's DistributedHDF5Tensor.create (skerch/hdf5.py, 1.2.0):
 * the main file, "ALL" for the {} of the pattern, has the virtual datasets `data` and
 * `flags`, which name the parts without a directory; a part, "BEGIN-END" with
 * len(str(shape[0])) + 1 digits each, END exclusive, has its rows of both, chunked,
 * compressed, fill time ALLOC, and all its flags are "initialized".
 */
#define CREATE_MAIN "ALL"
#define CREATE_DATA "data"
#define CREATE_FLAGS "flags"
#define CREATE_FLAG "initialized"
#define CREATE_PARTS_MAX 1000000

struct create_args {
	const char *pattern; /* path with one {} in its last component */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t block;           /* rows of a part; > 0 */
	bool chunked;             /* `chunk` was given; */
	uint64_t chunk[RANK_MAX]; /* otherwise a part is one chunk */
	const char *dtype;        /* NumPy's name of the type */
	struct pack_comp comp;    /* PACK_AUTO: lzf, as in skerch */
	bool replace;             /* replace existing files */
	unsigned jobs;            /* threads that make files: >= 1 */
	const _Atomic int *stop;
};
struct create_result {
	char *main;     /* path of the main file; malloc'ed */
	char descr[64]; /* NumPy's description of the type: "<f4" */
	uint64_t parts;
	uint64_t chunk[RANK_MAX]; /* chunk of `data` */
	uint64_t bytes;           /* bytes of all files */
	/* Other files that look like parts of a tensor of this pattern. */
	uint64_t others;
};
/*
 * Make all files, or none: they are made in a directory beside their places, synced, and
 * then moved to their places, the main file last.  Files that they replace are put back
 * if that fails midway.  Return 0; -EINVAL for bad arguments; -EEXIST; -EINTR if *stop
 * was set; or another error, each with a sentence.  *out is freed with
 * create_result_free.
 */
int hdf5_create(const struct create_args *a, struct create_result *out,
		struct error *err);
void create_result_free(struct create_result *r);

#endif
