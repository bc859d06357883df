/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor in other chunks, with other filters, and the file that it is in. */
#ifndef TENSORS_RECHUNK_HDF5_RECHUNK_H
#define TENSORS_RECHUNK_HDF5_RECHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pack/sink.h"
#include "store/store.h"
#include "tensor/tensor.h"
#include "tensors/rechunk/plan.h"

/* Of the other objects of the source's file, where it is an HDF5 file. */
enum rechunk_keep {
	RECHUNK_KEEP_ALL,  /* or nothing is written */
	RECHUNK_KEEP_MOST, /* without what cannot be copied */
	RECHUNK_KEEP_NONE
};
struct rechunk_options {
	struct store
		*store; /* its cache has `cache` bytes, no thread runs in it */
	struct tensor *tensor; /* served in the file's byte order */
	uint64_t cache;
	const char *path; /* of the output */
	/* In it; NULL: where it is in the source.  With a name the tensor comes alone. */
	const char *dataset;
	enum rechunk_keep keep;
	bool replace;
	const uint64_t *chunk; /* [rank]; NULL: the source's, or a sample */
	const struct pack_comp *comp; /* NULL: the source's filters */
	unsigned threads;             /* that decode and encode, at most */
	uint64_t memory;              /* bytes for all of this process */
	bool verify; /* read each chunk again, decode and compare it */
	const _Atomic int *stop;
	/* How many decoded bytes of the tensor are done; any thread, one at a time. */
	void (*progress)(void *ctx, uint64_t done);
	/* Something to know that is no failure; before and after the work. */
	void (*note)(void *ctx, const char *sentence);
	/* NULL, or called when all of it is synced: a failure keeps it from its name. */
	int (*check)(void *ctx, int fd, struct error *err);
	void *ctx;
};
struct rechunk_result {
	uint64_t chunk[RANK_MAX];
	char dataset[256], codec[128];
	struct rechunk_plan plan;
	uint64_t chunks;      /* new ones that were written */
	uint64_t unwritten;   /* new ones that are all fill value, as before */
	uint64_t chunk_bytes; /* of those that were written, encoded */
	uint64_t stored;      /* bytes of the file */
	unsigned threads;     /* that there was memory for */
	bool rest;         /* the other objects of the file are there, too, */
	uint64_t datasets; /* ... so many other datasets among them, */
	uint64_t lost;     /* ... but for so many things, which were noted */
	/* The failure is one of the source: a part is missing, bytes do not decode. */
	bool of_source;
};
/*
 * Memory is never more than o->memory: -ENOMEM, with how much it takes, where a chunk of the
 * source and one of the output do not fit.  -EINVAL: chunks or filters that cannot be;
 * -ENOTSUP: what is no array, or a file of which not all can be copied; -EINTR: *stop; what box_read and out_new say.  0: the file has
 * its name; else nothing has changed.
 */
int hdf5_rechunk(const struct rechunk_options *o, struct rechunk_result *out,
		 struct error *err);

#endif
