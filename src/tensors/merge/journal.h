/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal: a file that records what a merge has done, and outlives its process. */
#ifndef TENSORS_MERGE_JOURNAL_H
#define TENSORS_MERGE_JOURNAL_H

#include "base/vec.h"
#include "extent/file.h"
#include "tensor/grid.h"
#include "tensors/build.h"

/*
 * The file is a sequence of records: the plan, texts (flags), then chunks, and at the end
 * that the file is made.  The plan lists the files of the parts.  A record is written
 * only when the data that it speaks of is safely in the data file.  So a reader trusts
 * every record up to the first one that is not complete, which was being written when the
 * merge was interrupted.
 *
 *   u32 kind, u32 0, u64 length of the payload in bytes, payload,
 *   u64 XXH3 of what is before it in the record (seed: the record's position in the file)
 *
 * All numbers are little-endian.  A text is its length in bytes (u32) and its bytes.
 */
enum journal_kind {
	JOURNAL_PLAN = 0x314d4654, /* "TFM1" */
	JOURNAL_TEXTS = 2,
	JOURNAL_CHUNKS = 3,
	JOURNAL_MADE = 4
};
#define JOURNAL_FRONT 16 /* bytes of a record before its payload */
#define JOURNAL_BACK 8
/* The most chunks that a dataset may have: each takes a bit or two of memory. */
#define MERGE_CHUNKS_MAX (UINT64_C(1) << 30)
struct journal_file {
	char *path; /* absolute */
	struct identity id;
	bool kept; /* the merge does not delete it */
};
/* A dataset that is put together from chunks. */
struct journal_stream {
	char *path;
	unsigned rank; /* axes of the dataset, without those of an array type */
	uint32_t elem; /* bytes of an element as it is stored */
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	/* chunks of the grid; computed, not stored in the journal */
	uint64_t count;
	struct pipeline pipeline;
};
/* A number of consecutive rows that have the same value. */
struct journal_run {
	uint64_t rows;
	char *value;
};
struct journal_text {
	char *path;
	vec(struct journal_run) runs;
};
/* A chunk; or, if at.len is 0, `at.pos` chunks from number `at.number` on that were
 * never written and read as fill values. */
struct journal_chunk {
	uint32_t stream;
	struct build_chunk at;
};
struct journal {
	/* dev is not compared, because it differs from node to node */
	struct identity main;
	char *options; /* the user's options as text, to compare */
	vec(struct journal_stream) streams;
	vec(struct journal_file) parts;
	vec(struct journal_text) texts;
	vec(struct journal_chunk) chunks;
	/* where the data of `chunks` ends in the data file, in bytes; at least
	 * BUILD_FIRST */
	uint64_t end;
	/* the file is complete, and was renamed or is to be renamed */
	bool made;
	struct identity file; /* if `made`: the identity of the complete file */
	/* bytes of complete records; what follows is torn */
	uint64_t whole;
};

/* Parse the journal of `n` bytes at `data`.  Returns 0, -EBADMSG if complete records
 * contradict themselves, -ENOTSUP if another version wrote them, or -ENOMEM.
 * journal_free(out) must be called in any case. */
int journal_parse(struct journal *out, const void *data, size_t n,
		  struct error *err);
/* Read and parse the journal from `fd`; `path` is for error sentences.  An empty file
 * has no plan: then options is NULL, and streams and parts are empty. */
int journal_read(struct journal *out, int fd, const char *path,
		 struct error *err);
void journal_free(struct journal *j);
void journal_text_free(struct journal_text *t);

/* Append a record at j->whole and sync the file; returns 0 or -errno.  After a failure
 * the records that were there are still valid. */
int journal_write_plan(struct journal *j, int fd, struct error *err);
/* Append chunks[from ..], whose data ends at byte `end` of the data file. */
int journal_write_chunks(struct journal *j, int fd, size_t from, uint64_t end,
			 struct error *err);
int journal_write_made(struct journal *j, int fd, const struct identity *id,
		       struct error *err);

#endif
