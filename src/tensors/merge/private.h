/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of a merge share; hdf5_merge.c has the story. */
#ifndef TENSORS_MERGE_PRIVATE_H
#define TENSORS_MERGE_PRIVATE_H

#include <errno.h>
#include <pthread.h>

#include "formats/hdf5/file/source.h"
#include "tensors/merge/hdf5_merge.h"
#include "tensors/merge/journal.h"

/* ---- what is in the main file (tensors/merge/look.c) ------------------------ */

enum item_kind {
	ITEM_GROUP,
	ITEM_SAME,   /* another name of an item before */
	ITEM_SOFT,   /* a soft link, as it is */
	ITEM_TYPE,   /* a named type */
	ITEM_KEPT,   /* a dataset that needs no other file, as it is */
	ITEM_STREAM, /* put together of chunks */
	ITEM_VALUES  /* put together by the library: strings, ... */
};
/* An object of the output, after the group that it is in. */
struct item {
	enum item_kind kind;
	H5T_cset_t cset;    /* of its name */
	char *path;         /* in the output, "/a/b"; "/": the root */
	uint32_t file;      /* where it is now, */
	const char *object; /* ... its path there; the source's */
	char *target; /* SAME: the path of that item; SOFT: what it says */
	size_t index; /* STREAM, VALUES: which */
	/* Identity: */
	uint64_t dev, ino;
	haddr_t addr;
};

/* ---- datasets that are put together -------------------------------------- */

/* Part of a tensor; what is known of it before anything is copied. */
#define MERGE_UNKNOWN (UINT64_MAX - 1)
struct merge_part {
	bool raw; /* its chunks may be copied where the grids agree */
	struct location only; /* where its only chunk is; pos MERGE_UNKNOWN */
};
struct stream {
	struct tensor *t;
	uint64_t own_elem; /* stored bytes of an element, array types included
			    */
	unsigned own_rank; /* axes behind these are of an array type */
	struct grid grid;  /* of the output, all axes */
	struct pipeline pipeline;
	bool unfiltered; /* what has to be encoded is stored as it is */
	struct merge_part *part;
	_Atomic uint64_t *claimed; /* a bit for each chunk: somebody has it */
	uint64_t *safe;            /* the same: it is in the journal */
	/* Tiles of part p: tile[first[p]] to tile[first[p + 1] - 1] */
	uint32_t *first, *tile;
	bool boxes; /* all tiles are boxes */
};
/* Strings and the like; `runs` when they were read before anything else. */
struct values {
	struct tensor *t;
	bool is_flags, captured;
	struct journal_text text;
};
/* A file that has parts. */
struct merge_use {
	uint32_t stream, part;
};
struct merge_file {
	uint32_t file; /* number in handles */
	struct identity id;
	bool late; /* needed until the end */
	bool main; /* the main file itself, perhaps under another name */
	bool gone; /* deleted, by this merge or an attempt before */
	bool kept; /* is not deleted (tensors/merge/keep.c); what says so: */
	bool journaled;     /* an attempt before has decided */
	bool raw;           /* raw data, no HDF5 file, */
	bool raw_whole;     /* ... and all of it is one dataset's */
	const char *partly; /* a dataset of which rows are not in the output */
	vec(const char *) taken; /* paths of datasets that are */
	vec(struct merge_use) uses;
};

struct merge {
	struct merge_options o;
	struct merge_result *result;
	/* Files: tensors/merge/place.c */
	char *out, *dir, *data_path, *journal_path;
	int dir_fd, lock_fd, main_fd, data_fd;
	mode_t mode;
	bool in_place;
	bool began;     /* what is at data_path is ours */
	bool ended;     /* and now nothing of it is left */
	bool rehearsal; /* chunks are read, and not written */
	struct identity main_id;
	/* The source */
	struct hdf5_source *s;
	struct store *store;
	struct handles *handles;
	vec(struct item) items;
	void *seen; /* tsearch tree of items by identity */
	vec(struct stream) streams;
	vec(struct values) values;
	vec(struct merge_file) files;
	vec(uint32_t) file_index; /* by number in handles; UINT32_MAX: none */
	uint64_t dir_dev;         /* file system of the output */
	/* What is done */
	struct journal j;
	struct build *b;
	pthread_mutex_t lock; /* the journal's chunks, and: */
	uint64_t bytes_done, bytes_all;
	uint64_t stored_bytes; /* of parts, before */
	struct error failure;  /* of a worker */
	_Atomic bool failed;
	size_t written; /* chunks of the journal that are in its file */
};

/* tensors/merge/place.c: names, lock, earlier attempts, the end. */
int merge_place_open(struct merge *m, struct error *err);
/* What the journal says is on the disk. */
int merge_place_sync_journal(struct merge *m, struct error *err);
/* The data file, empty or cut to what the journal says, which is synced. */
int merge_place_data(struct merge *m, bool resume, struct error *err);
/* The data file is the output now. */
int merge_place_publish(struct merge *m, struct error *err);
/* Remove the data file and the journal (the journal only: it was published). */
void merge_place_remove(struct merge *m, bool published);
/* Delete the files that the journal lists, and then the journal. */
int merge_place_finish(struct merge *m, struct error *err);
/* Those files.  -ESTALE: some have changed and stay; that was all. */
int merge_place_delete_listed(struct merge *m, struct error *err);
/* The same file: dev is not compared, because it differs from node to node. */
static inline bool merge_same_file(const struct identity *a,
				   const struct identity *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime == b->mtime;
}
/* Contents seem the same; the number of a file changes when it is moved to another file
 * system. */
static inline bool merge_place_alike(const struct identity *a,
				     const struct identity *b)
{
	return a->size == b->size && a->mtime == b->mtime;
}
/* -ESTALE: it is another file now, or has other contents. */
int merge_place_unchanged(const char *path, const struct identity *id,
			  struct error *err);
/* Delete one part's file, if it still is the one that was copied. */
int merge_place_delete(struct merge *m, const char *path,
		       const struct identity *id, struct error *err);

/* tensors/merge/look.c: m->items; no lock. */
int merge_look(struct merge *m, struct error *err);
/* The item that an object is; NULL: none.  Its file is open. */
const struct item *merge_item_of(struct merge *m, uint32_t file, haddr_t addr);

/* tensors/merge/plan.c: m->streams, m->values, with tensors, for the items that need them. */
int merge_plan(struct merge *m, struct error *err);
/* Shape of chunks and filters, of the parts or as the user wants them. */
int merge_plan_layout(struct merge *m, struct stream *s, const char *path,
		      struct error *err);
/* Is tile i of a mosaic a box of it? */
bool merge_tile_box(const struct tensor *t, uint32_t i, struct box *out);

/* tensors/merge/check.c: all parts are there and right; m->files. */
int merge_check_parts(struct merge *m, struct error *err);
int merge_check_flags(struct merge *m, struct error *err);
/* Room for the output; and may parts be deleted, if they are to be? */
int merge_check_room(struct merge *m, struct error *err);
/* The files that `file` is a part of; made when it is not there.  NULL: no memory. */
struct merge_file *merge_file_of(struct merge *m, uint32_t file);

/* tensors/merge/resume.c: the journal's beginning; what an earlier one says. */
int merge_journal_begin(struct merge *m, struct error *err);
/* NULL, or why the journal is of a merge that is not this one. */
const char *merge_journal_foreign(const struct merge *m);
/* Which files must not be deleted early, or at all. */
int merge_protect_files(struct merge *m, struct error *err);
/* tensors/merge/keep.c: and which are not to be deleted, because there is more in them, or
 * others may need them. */
int merge_keep_files(struct merge *m, struct error *err);
/* Files that the journal has by other names are as they were: -ESTALE. */
int merge_check_renamed(struct merge *m, struct error *err);
/* 1: what it has done is taken over; 0: begin anew. */
int merge_journal_resume(struct merge *m, struct error *err);

/* Are all chunks that part p has elements of safe?  False where that is not easily
 * known. */
bool merge_part_is_safe(const struct stream *s, uint32_t p);
/* tensors/merge/work.c: every chunk of every stream. */
int merge_work(struct merge *m, struct error *err);
/* The same, and nothing is written or noted: does all decode that has to be? */
int merge_work_rehearse(struct merge *m, struct error *err);
/* tensors/merge/chunk.c: what a thread does for one. */
struct merge_buffers {
	void *plain, *coded;
};
struct merge_pool;
int merge_pool_new(struct merge_pool **out, const struct merge *m,
		   struct error *err);
void merge_pool_free(struct merge_pool *p);
struct merge_counts {
	_Atomic uint64_t copied, encoded, empty;
};
struct merge_worker {
	struct merge *m;
	struct merge_pool *pool;
	struct merge_counts *counts;
	/* Locations that were asked for last. */
	struct tensor *t;
	uint32_t part, n;
	uint64_t first;
	struct location where[TENSOR_SEGMENT];
};
/* len 0: there is none. */
int merge_chunk(struct merge_worker *w, uint32_t stream, uint64_t number,
		struct build_chunk *out, struct error *err);

/* tensors/merge/values.c */
/* All of a dataset of strings as runs: v->text. */
int merge_values_runs(struct merge *m, struct values *v, struct error *err);
/* Elements by way of the library, of VALUES or (KEPT) of a dataset
 * as it is, into an open dataset of the output, with its type; lock held. */
int merge_values_write(struct merge *m, const struct item *it, hid_t to,
		       bool odd_fill, struct error *err);

/* tensors/merge/make.c: the file around the chunks, made in a process of its own. */
int merge_make_apart(struct merge *m, struct error *err);
/* tensors/merge/attr.c: attributes of an object, all but those with references; or those
 * only.  Lock held. */
int merge_attributes(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, bool references, struct error *err);
/* A dataset of references, of which the library's copy has none. */
int merge_references(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, struct error *err);

/* ---- a bit for each chunk of a stream ------------------------------------- */

static inline size_t bits_words(uint64_t n)
{
	return (size_t)(n / 64 + 1);
}
static inline bool bits_get(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}
static inline void bits_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline bool merge_stopped(const struct merge *m)
{
	return *m->o.stop || atomic_load(&m->failed);
}

#endif
