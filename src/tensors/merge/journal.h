/* SPDX-License-Identifier: BSD-2-Clause */
/* What a merge has done so far, in a file that outlives it. */
#ifndef TENSORS_MERGE_JOURNAL_H
#define TENSORS_MERGE_JOURNAL_H

#include "base/vec.h"
#include "extent/file.h"
#include "tensor/grid.h"
#include "tensors/build.h"

/*
 * Records, each with its length and a checksum that knows where it is: the plan, the files
 * of the parts, texts (flags), then chunks, and in the end that the file is made.  A record
 * is written when what it says is safely in the data file, so a reader believes all of
 * them, up to the first that is not whole: that one was being written.
 *
 *   u32 kind, u32 0, u64 length of the payload, payload, u64 XXH3 of all before (seed: its
 *   place in the file).  All numbers little-endian; texts: u32 length, bytes.
 */
enum journal_kind {
	JOURNAL_PLAN = 0x314d4654, /* "TFM1" */
	JOURNAL_TEXTS = 2,
	JOURNAL_CHUNKS = 3,
	JOURNAL_MADE = 4
};
#define JOURNAL_FRONT 16 /* bytes before the payload */
#define JOURNAL_BACK 8
/* Chunks of a dataset: for each there is a bit or two in memory. */
#define MERGE_CHUNKS_MAX (UINT64_C(1) << 30)
struct journal_file {
	char *path; /* absolute */
	struct identity id;
	bool kept; /* it is not to be deleted */
};
/* A dataset that is put together of chunks. */
struct journal_stream {
	char *path;
	unsigned rank; /* axes of the dataset's own */
	uint32_t elem; /* stored bytes of an element */
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	uint64_t count; /* chunks of the grid; not in the file */
	struct pipeline pipeline;
};
/* One value, so many rows. */
struct journal_run {
	uint64_t rows;
	char *value;
};
struct journal_text {
	char *path;
	vec(struct journal_run) runs;
};
/* len 0: there are none, from `number` on as many as `pos` says: they read as fill
 * values. */
struct journal_chunk {
	uint32_t stream;
	struct build_chunk at;
};
struct journal {
	struct identity main; /* dev is not looked at: nodes differ in it */
	char *options;        /* what the user wanted, as text */
	vec(struct journal_stream) streams;
	vec(struct journal_file) parts;
	vec(struct journal_text) texts;
	vec(struct journal_chunk) chunks;
	uint64_t end; /* of the data that `chunks` need; BUILD_FIRST */
	bool made;    /* the file is whole, and was or is to be renamed */
	struct identity file; /* made: it */
	uint64_t whole;       /* bytes of whole records; what follows is torn */
};

/* Everything in `n` bytes.  -EBADMSG: whole records that contradict themselves; -ENOTSUP:
 * of another version; -ENOMEM.  `out` is to be freed in any case. */
int journal_parse(struct journal *out, const void *data, size_t n,
		  struct error *err);
/* The same of a file; an empty one has no plan (streams.n, parts.n and options are 0). */
int journal_read(struct journal *out, int fd, const char *path,
		 struct error *err);
void journal_free(struct journal *j);
void journal_text_free(struct journal_text *t);

/* Append a record at j->whole, and sync the file.  A failure leaves what was there. */
int journal_write_plan(struct journal *j, int fd, struct error *err);
/* Of chunks[from ..], whose data ends at `end`. */
int journal_write_chunks(struct journal *j, int fd, size_t from, uint64_t end,
			 struct error *err);
int journal_write_made(struct journal *j, int fd, const struct identity *id,
		       struct error *err);

#endif
