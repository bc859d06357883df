/* SPDX-License-Identifier: BSD-2-Clause */
/* One HDF5 file that needs no other: virtual datasets and links put together. */
#ifndef TENSORS_MERGE_HDF5_MERGE_H
#define TENSORS_MERGE_HDF5_MERGE_H

#include <stdatomic.h>

#include "formats/source.h"
#include "pack/sink.h"
#include "store/store.h"

struct merge_options {
	const char *main;       /* path of the main file */
	const char *out;        /* NULL: in its place */
	const char *check_flag; /* NULL: flags are not looked at */
	const char *chunk;      /* "N,...", NULL: that of the parts */
	struct pack_comp comp;
	bool comp_given; /* else that of the parts */
	bool replace;    /* what is at `out` */
	bool delete_parts;
	unsigned threads; /* that encode: >= 1 */
	unsigned jobs;    /* that copy: >= 1 */
	uint64_t memory;  /* bytes for chunks on their way */
	const _Atomic int *stop;
	/* Called now and then, by one thread. */
	void (*progress)(void *ctx, const char *what, uint64_t done,
			 uint64_t total);
	void *ctx;
};
struct merge_result {
	uint64_t datasets;               /* that were put together */
	uint64_t parts, deleted;         /* files */
	uint64_t kept_files;             /* not to be deleted */
	uint64_t copied, encoded, empty; /* chunks; empty: never written */
	uint64_t bytes, stored;          /* of elements; of the file */
	bool nothing;                    /* it is one file already */
	bool resumed; /* an earlier attempt had done part of it */
	bool kept; /* it failed, and what there is of it stays, so that the same
			 command goes on */
};

/*
 * First: names, the lock (one merge of an output at a time), and what an earlier attempt
 * has left.  1: that had made the file, and now all is done; 0: go on with merge_run.
 * -EEXIST, -EISDIR: `out`; -EBUSY: another one is at it; -EBADMSG...: what is left of an
 * earlier one cannot be used; nothing was touched then.
 */
struct merge;
int merge_begin(struct merge **out, const struct merge_options *o,
		struct merge_result *r, struct error *err);
/*
 * `source` is the main file, opened with source_order set (elements as stored).  Checks
 * come first: all parts there, as they should be, flags right, room on the disk; then
 * nothing has been touched.  After that a failure leaves either nothing or, with
 * `delete_parts`, what the next attempt goes on with (r->kept).  -ENODATA: a part is
 * missing, and so on as readers say; -EPERM: flags; -ENOSPC; -EINTR: *stop.
 */
int merge_run(struct merge *m, struct source *source, struct store *store,
	      struct error *err);
/* Let go; `m` may be NULL. */
void merge_free(struct merge *m);

#endif
