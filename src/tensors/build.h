/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 file that is built from the inside out: first the chunks, then what refers to
 * them. */
#ifndef TENSORS_BUILD_H
#define TENSORS_BUILD_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/pipeline.h"

/*
 * Stored (encoded) chunks are written by any thread, with pwrite, one after the other,
 * from BUILD_FIRST on.  libhdf5 is not involved, and no lock is held.  At the end libhdf5
 * makes the file around them: when it asks for room for a chunk, a file driver of ours
 * returns the place where the chunk is already, and drops the write.  Metadata goes
 * behind the last chunk, the superblock to the beginning.  So until build_open nothing in
 * the file depends on order, and an interrupted build can be continued from a list of
 * chunks.
 */
#define BUILD_FIRST 4096
#define BUILD_CHUNK_MAX UINT32_MAX /* bytes of a chunk, decoded or stored */
struct build;
/* Begin a build.  `fd` (borrowed) is open for reading and writing; `path` is its name in
 * sentences and is never opened; the first chunk goes to byte `end` >= BUILD_FIRST. */
int build_new(struct build **out, int fd, const char *path, uint64_t end,
	      struct error *err);
/* To be called before any chunk is placed: the file has `n` bytes in front of its
 * superblock (0, or a size that HDF5 allows for a user block).  The caller writes
 * them. */
void build_user_block(struct build *b, uint64_t n);
/* Append `n` bytes and set *pos to their place.  Any thread.  Return 0 or -ENOSPC, ...
 * with a sentence. */
int build_put(struct build *b, const void *data, size_t n, uint64_t *pos,
	      struct error *err);
/* The two steps of build_put, for any thread: reserve `n` bytes at *pos, and write
 * them. */
int build_place(struct build *b, size_t n, uint64_t *pos, struct error *err);
int build_put_at(struct build *b, const void *data, size_t n, uint64_t pos,
		 struct error *err);
/* As build_put for bytes of another file, copied by the kernel if it can.  Any thread.
 * Return -ENODATA if that file ends before them. */
int build_copy(struct build *b, int from, uint64_t from_pos, size_t n,
	       uint64_t *pos, struct error *err);
/* The end of the last chunk that was placed, in bytes. */
uint64_t build_end(const struct build *b);

/*
 * All functions below are for one thread, which holds the library's lock (hdf5_lock) and
 * has called hdf5_init.  build_open creates the file with libhdf5 (superblock 0, h5py's
 * default).  Groups, attributes and datasets are then made with the library as usual, in
 * addition to those of build_dataset; filters of codec_table that have an encoder are
 * registered for them.  Once a write has failed, the library does not learn of it and
 * further writes do nothing; build_close returns the failure.
 */
int build_open(struct build *b, hid_t *file, struct error *err);
/* As build_open, with properties of the file: a user block, and properties of the root
 * group. */
int build_open_with(struct build *b, hid_t fcpl, hid_t *file,
		    struct error *err);
/* From here on writes fail with -EINTR, "interrupted", once *stop is set.  For copies of
 * data that the library makes by itself. */
void build_stop(struct build *b, const _Atomic int *stop);
struct build_chunk {
	uint64_t number; /* in C order of the grid of chunks */
	uint64_t pos;
	uint32_t len;
	uint32_t mask; /* bits of filters that were skipped */
};
struct build_dataset {
	const char *path; /* missing groups are created */
	hid_t type;
	unsigned rank; /* > 0 */
	/* Each chunk[i] is at most shape[i] (libhdf5 requires that if `max` is fixed),
	 * except for a shape with a 0 that cannot grow: such a dataset has no chunks and
	 * no filters. */
	const uint64_t *shape, *chunk;
	/* Shape that it may grow to, UINT64_MAX: no limit; NULL: `shape`. */
	const uint64_t *max;
	const struct pipeline *pipeline;
	const void *fill; /* one element, as stored; NULL: zeros */
	/* Flags for H5Pset_attr_creation_order, which attributes of 64 KiB and more need.
	 * 0: creation order is not tracked. */
	unsigned attr_order;
	/* The chunks that are written; all others are fill value.  build_dataset sorts
	 * them by number. */
	struct build_chunk *chunks;
	uint64_t n_chunks;
};
/* Create a dataset with these chunks.  *dset is open, for attributes; the caller closes
 * it.  Return -EINVAL if a chunk is not in the grid, is there twice, or is not in the
 * file; -ENOTSUP if libhdf5 does not behave as this needs. */
int build_dataset(struct build *b, hid_t file, const struct build_dataset *d,
		  hid_t *dset, struct error *err);
/* Add filters to a property list for H5Dcreate, with flags and parameters as h5py has
 * them. */
int build_filters(hid_t dcpl, const struct pipeline *p, struct error *err);
/*
 * To be called before H5Ocopy of a dataset with this property list.  libhdf5 1.10 gives
 * the filters of a copy the room that they take in the source, but then writes the names
 * of those that the process knows even if the source has none, over what follows.  From
 * here on its filters have no names, and cannot be used, until the copy is written
 * (H5Oflush) and our filters are registered again.  Return 0; 1 if there are no such
 * filters and nothing has to be undone; -EIO.
 */
int build_filters_nameless(hid_t dcpl, struct error *err);
/* Close the file with everything that is open in it, and write it to the descriptor,
 * without a sync.  The file is truncated to the end of its data. */
int build_close(struct build *b, hid_t file, struct error *err);
/* Free `b`, which may be NULL.  A file that build_open left open becomes unusable.  Takes
 * the lock itself if build_open was called without build_close. */
void build_free(struct build *b);

#endif
