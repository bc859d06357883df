/* SPDX-License-Identifier: BSD-2-Clause */
/* Make one HDF5 file that needs no other: virtual datasets and links are put together. */
#ifndef TENSORS_MERGE_HDF5_MERGE_H
#define TENSORS_MERGE_HDF5_MERGE_H

#include <stdatomic.h>

#include "formats/source.h"
#include "pack/sink.h"
#include "store/store.h"

struct merge_options {
	const char *main; /* path of the main file */
	/* path of the output; NULL: the main file is replaced */
	const char *out;
	/* the value that all flags must have; NULL: do not check */
	const char *check_flag;
	/* "N,...": shape of the output's chunks; NULL: as in the parts */
	const char *chunk;
	struct pack_comp comp;
	bool comp_given; /* false: use the filters of the parts */
	bool replace;    /* an existing file at `out` may be replaced */
	bool delete_parts;
	unsigned threads; /* threads that encode: >= 1 */
	unsigned jobs;    /* threads that copy: >= 1 */
	/* bytes of memory for chunks that are read or encoded */
	uint64_t memory;
	const _Atomic int *stop;
	/* Called from time to time, by one thread at a time; `done` and `total` are
	 * bytes. */
	void (*progress)(void *ctx, const char *what, uint64_t done,
			 uint64_t total);
	void *ctx;
};
struct merge_result {
	/* datasets that were put together from parts */
	uint64_t datasets;
	/* numbers of files: of parts, of parts that were deleted */
	uint64_t parts, deleted;
	/* files that --delete-parts leaves, because more than the output's data is in
	 * them */
	uint64_t kept_files;
	/* numbers of chunks; `empty` ones were never written */
	uint64_t copied, encoded, empty;
	/* bytes of all elements; bytes of the output file */
	uint64_t bytes, stored;
	/* nothing had to be done: the main file needs no other */
	bool nothing;
	bool resumed; /* an earlier attempt had done a part of the work */
	/* the merge failed, and its files stay, so that the same command goes on from
	 * there */
	bool kept;
};

/*
 * Start a merge: choose names, take the lock (only one merge of an output runs at a time)
 * and read what an earlier attempt has left.  Return 1 if that attempt had made the file
 * and everything is done now, 0 if the caller has to go on with merge_run.  Errors:
 * -EEXIST or -EISDIR because of what is at `out`; -EBUSY: another process merges into it;
 * -EBADMSG: the files of an earlier attempt cannot be used, and nothing was touched.  May
 * block for a few seconds to get the lock.  *out is to be freed in any case; it may be
 * NULL.
 */
struct merge;
int merge_begin(struct merge **out, const struct merge_options *o,
		struct merge_result *r, struct error *err);
/*
 * Merge.  `source` is the main file, opened with source_order set (elements as they are
 * stored).  Checks come first: all parts are there and right, flags are right, the disk
 * has room; up to here nothing has been touched.  After that, a failure leaves either
 * nothing or, with `delete_parts`, the files from which the next attempt goes on
 * (result->kept).  Returns 0 or an error: -ENODATA if a part is missing (and other codes
 * as readers give them), -EPERM if flags are wrong, -ENOSPC, -EINTR if *stop was set,
 * -ESTALE if a file has changed.  Blocks until the merge is done.
 */
int merge_run(struct merge *m, struct source *source, struct store *store,
	      struct error *err);
/* Free `m`, which may be NULL; close its files, and remove those that no attempt can
 * use. */
void merge_free(struct merge *m);

#endif
