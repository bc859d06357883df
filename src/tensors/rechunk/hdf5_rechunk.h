/* SPDX-License-Identifier: BSD-2-Clause */
/* Write a tensor in other chunks, with other filters, and the file that it is in. */
#ifndef TENSORS_RECHUNK_HDF5_RECHUNK_H
#define TENSORS_RECHUNK_HDF5_RECHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pack/sink.h"
#include "store/store.h"
#include "tensor/tensor.h"
#include "tensors/rechunk/plan.h"

/* What to copy of the other objects of the source's file, if it is an HDF5 file. */
enum rechunk_keep {
	RECHUNK_KEEP_ALL,  /* all of them, or fail */
	RECHUNK_KEEP_MOST, /* leave out what cannot be copied */
	RECHUNK_KEEP_NONE
};
struct rechunk_options {
	struct store *store; /* with a cache of `cache` bytes and no threads */
	struct tensor *tensor; /* served in the file's byte order */
	uint64_t cache;
	const char *path; /* path of the output */
	/* Path of the dataset in it; NULL: as in the source.  If it is set, the tensor
	 * comes alone. */
	const char *dataset;
	enum rechunk_keep keep;
	bool replace;
	/* [rank]; NULL: the source's chunks, or a sample. */
	const uint64_t *chunk;
	const struct pack_comp *comp; /* NULL: the source's filters */
	/* Threads that decode and encode, at most. */
	unsigned threads;
	/* Bytes of memory for all of this process. */
	uint64_t memory;
	bool verify; /* read each chunk back, decode and compare it */
	const _Atomic int *stop;
	/* Called with the number of decoded bytes of the tensor that are done; by any
	 * thread, one at a time. */
	void (*progress)(void *ctx, uint64_t done);
	/* Called with a sentence that the user should read although nothing failed;
	 * before and after the work. */
	void (*note)(void *ctx, const char *sentence);
	/* NULL, or called when the output is synced; a failure keeps it from getting its
	 * name. */
	int (*check)(void *ctx, int fd, struct error *err);
	void *ctx;
};
struct rechunk_result {
	uint64_t chunk[RANK_MAX];
	char dataset[256], codec[128];
	struct rechunk_plan plan;
	uint64_t chunks; /* new chunks that were written */
	/* New chunks of nothing but fill value, not written. */
	uint64_t unwritten;
	uint64_t chunk_bytes; /* encoded bytes of the written chunks */
	uint64_t stored;      /* bytes of the file */
	unsigned threads;     /* threads that there was memory for */
	bool rest;         /* the other objects of the file were copied, too, */
	uint64_t datasets; /* ... among them this many datasets, */
	uint64_t lost;     /* ... except this many, which were reported */
	/* The failure is one of the source: a part is missing, or bytes do not decode. */
	bool of_source;
};
/*
 * Write the tensor, using no more than o->memory bytes.  Return 0 if the output has its
 * name; otherwise nothing has changed: -ENOMEM, with the memory needed, if a chunk of the
 * source and one of the output do not fit; -EINVAL for chunks or filters that are not
 * possible; -ENOTSUP if the tensor is not an array, or not all of its file can be copied;
 * -EINTR if *stop was set; errors of box_read and out_new.  *out is set in any case.
 */
int hdf5_rechunk(const struct rechunk_options *o, struct rechunk_result *out,
		 struct error *err);

#endif
