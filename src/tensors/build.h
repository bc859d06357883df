/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 file that is built from the inside out: chunks first, then what names them. */
#ifndef TENSORS_BUILD_H
#define TENSORS_BUILD_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/pipeline.h"

/*
 * Stored (encoded) chunks are written by any thread, with pwrite, one behind the other,
 * from BUILD_FIRST on; libhdf5 has no part in that, and there is no lock but for the next
 * position.  At the end libhdf5 makes the file around them: a file driver of ours answers
 * its request for room for a chunk with the place where the chunk is already, and drops the
 * write; metadata goes behind the last chunk, the superblock to the beginning.  So, until
 * build_open, nothing in the file depends on order, and an interrupted build can go on from
 * a list of chunks.
 */
#define BUILD_FIRST 4096
#define BUILD_CHUNK_MAX UINT32_MAX /* bytes of a chunk, decoded or stored */
struct build;
/* `fd` (borrowed) is open for reading and writing, `path` what it is called in sentences:
 * nobody opens it; `end`: where the next chunk goes, >= BUILD_FIRST. */
int build_new(struct build **out, int fd, const char *path, uint64_t end,
	      struct error *err);
/* Before any chunk: the file has so many bytes (0, or what HDF5 takes for a user block) in
 * front of its superblock.  They are the caller's to write. */
void build_user_block(struct build *b, uint64_t n);
/* Any thread: `n` bytes are at *pos now.  -ENOSPC, ... with a sentence. */
int build_put(struct build *b, const void *data, size_t n, uint64_t *pos,
	      struct error *err);
/* Any thread: both steps by themselves.  The next `n` bytes are the caller's, and: they
 * are these. */
int build_place(struct build *b, size_t n, uint64_t *pos, struct error *err);
int build_put_at(struct build *b, const void *data, size_t n, uint64_t pos,
		 struct error *err);
/* Any thread: the same for bytes of another file, copied by the kernel if it can.
 * -ENODATA: that file ends before. */
int build_copy(struct build *b, int from, uint64_t from_pos, size_t n,
	       uint64_t *pos, struct error *err);
/* Bytes up to the end of the last chunk. */
uint64_t build_end(const struct build *b);

/*
 * From here on one thread, which holds the library's lock (hdf5_lock; hdf5_init was
 * called).  The file, made new by libhdf5 (superblock 0, as h5py's default): groups,
 * attributes and datasets are made with the library as usual, beside those of
 * build_dataset, and filters of codec_table that have an encoder are there for them.
 * Once a write has failed, the library is told no more of it: build_close says so.
 */
int build_open(struct build *b, hid_t *file, struct error *err);
/* The same with properties of the file: the user block, if there is one, and those of the
 * root group. */
int build_open_with(struct build *b, hid_t fcpl, hid_t *file,
		    struct error *err);
/* From here on writes fail with -EINTR, "interrupted", when *stop is set: for copies of data
 * that the library makes by itself. */
void build_stop(struct build *b, const _Atomic int *stop);
struct build_chunk {
	uint64_t number; /* in C order of the grid of chunks */
	uint64_t pos;
	uint32_t len;
	uint32_t mask; /* filters that were skipped */
};
struct build_dataset {
	const char *path; /* groups on the way are made */
	hid_t type;
	unsigned rank; /* > 0 */
	/* Each chunk[i] is at most shape[i] (libhdf5 wants that where `max` is fixed),
	 * but for a shape with a 0 that cannot grow: that has no chunks, and no filters
	 * either. */
	const uint64_t *shape, *chunk;
	const uint64_t *max; /* shape that it may grow to, UINT64_MAX: any;
				NULL: `shape` */
	const struct pipeline *pipeline;
	const void *fill; /* one element, as stored; NULL: zeros */
	/* Of its attributes, as H5Pset_attr_creation_order has it; those of 64 KiB and
	 * more need it.  0: in no order. */
	unsigned attr_order;
	/* Those that are not here were never written.  Sorted by number here if they
	 * are not. */
	struct build_chunk *chunks;
	uint64_t n_chunks;
};
/* *dset: open, for attributes; the caller closes it.  -EINVAL: a chunk is not in the
 * grid, twice in it, or not among what was put; -ENOTSUP: libhdf5 does not behave as this
 * needs. */
int build_dataset(struct build *b, hid_t file, const struct build_dataset *d,
		  hid_t *dset, struct error *err);
/* The same for what is made with H5Dcreate: add filters to a property list, with flags
 * and numbers as h5py has them. */
int build_filters(hid_t dcpl, const struct pipeline *p, struct error *err);
/*
 * Before H5Ocopy of a dataset with this property list: 1.10 gives the filters of the copy
 * the room that they have in the source, and then writes the names of those that the
 * process knows behind those that have none, over what follows.  From here on its filters
 * have no names, and cannot be used, until the copy is written (H5Oflush) and ours are
 * registered again.  1: there is no such filter, and nothing to do.
 */
int build_filters_nameless(hid_t dcpl, struct error *err);
/* Close, with all that is open in it, and flush to the descriptor; does not sync.  The
 * file ends where its data does. */
int build_close(struct build *b, hid_t file, struct error *err);
/* What is open is closed, and worth nothing; `b` may be NULL.  Takes the lock itself
 * when build_open was called without build_close. */
void build_free(struct build *b);

#endif
