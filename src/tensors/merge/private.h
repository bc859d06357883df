/* SPDX-License-Identifier: BSD-2-Clause */
/* The data that the steps of a merge share; hdf5_merge.c describes the steps. */
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
	ITEM_SAME, /* another name (a hard link) of an earlier item */
	ITEM_SOFT, /* a soft link, which is copied as it is */
	ITEM_TYPE, /* a committed (named) datatype */
	/* a dataset that needs no other file and is copied as it is */
	ITEM_KEPT,
	ITEM_STREAM, /* a dataset that is put together from chunks */
	/* a dataset that libhdf5 puts together: strings, sequences, ... */
	ITEM_VALUES
};
/* An object of the output.  The list has it after the group that it is in. */
struct item {
	enum item_kind kind;
	H5T_cset_t cset; /* character set of its name */
	char *path;      /* in the output: "/a/b"; "/" is the root */
	/* number (in handles) of the file that it is in now */
	uint32_t file;
	const char *object; /* its path in that file; interned by the source */
	/* SAME: the path of the earlier item; SOFT: the text of the link */
	char *target;
	/* STREAM, VALUES: number in merge.streams or merge.values */
	size_t index;
	/* The object's identity: its file and its address there. */
	uint64_t dev, ino;
	haddr_t addr;
};

/* ---- datasets that are put together -------------------------------------- */

/* What is known of a part of a tensor before anything is copied. */
#define MERGE_UNKNOWN (UINT64_MAX - 1)
struct merge_part {
	bool raw; /* its stored chunks may be copied where the grids agree */
	/* position of its only chunk; pos is MERGE_UNKNOWN if it has several or was not
	 * looked up */
	struct location only;
};
struct stream {
	struct tensor *t;
	/* stored bytes of an element of the dataset: of all elements of an array type */
	uint64_t own_elem;
	/* axes of the dataset; the further ones belong to an array type */
	unsigned own_rank;
	struct grid grid; /* chunks of the output, with all axes */
	struct pipeline pipeline;
	/* chunks that cannot be copied are stored without filters */
	bool unfiltered;
	struct merge_part *part;
	/* a bit for each chunk: a thread works on it, or it is done */
	_Atomic uint64_t *claimed;
	uint64_t *safe; /* a bit for each chunk: the journal has it */
	/* The tiles of part p are tile[first[p]] to tile[first[p + 1] - 1]. */
	uint32_t *first, *tile;
	bool boxes; /* all tiles are boxes of the tensor */
};
/* A dataset of strings or the like.  `captured`: text.runs has all of its values,
 * which were read before anything else. */
struct values {
	struct tensor *t;
	bool is_flags, captured;
	struct journal_text text;
};
/* A part of a stream. */
struct merge_use {
	uint32_t stream, part;
};
/* A file that has parts, or objects that links lead to. */
struct merge_file {
	uint32_t file; /* number in handles */
	struct identity id;
	bool late; /* it is needed until the end of the merge */
	bool main; /* it is the main file itself, perhaps under another name */
	bool gone; /* it was deleted, by this merge or an earlier attempt */
	bool kept; /* it is not deleted (keep.c decides from the fields below) */
	/* an earlier attempt has decided, and the journal says so */
	bool journaled;
	bool raw; /* it is raw data, not an HDF5 file */
	/* it is raw data, and all of it belongs to one dataset */
	bool raw_whole;
	/* path of a dataset some of whose rows are not in the output */
	const char *partly;
	vec(const char *) taken; /* paths of datasets that are in the output */
	vec(struct merge_use) uses;
};

struct merge {
	struct merge_options o;
	struct merge_result *result;
	/* Files (place.c). */
	char *out, *dir, *data_path, *journal_path;
	int dir_fd, lock_fd, main_fd, data_fd;
	mode_t mode;
	bool in_place;
	bool began;     /* this merge has made the file at data_path */
	bool ended;     /* and neither that file nor a journal is left */
	bool rehearsal; /* chunks are read to find errors, and not written */
	struct identity main_id;
	/* The source. */
	struct hdf5_source *s;
	struct store *store;
	struct handles *handles;
	vec(struct item) items;
	void *seen; /* a tsearch() tree of items by identity */
	vec(struct stream) streams;
	vec(struct values) values;
	vec(struct merge_file) files;
	/* numbers in `files` by number in handles; UINT32_MAX: it is not in `files` */
	vec(uint32_t) file_index;
	uint64_t dir_dev; /* st_dev of the output's directory */
	/* What is done. */
	struct journal j;
	struct build *b;
	/* protects j.chunks, the file tables during the checks, and the fields down to
	 * `failed` */
	pthread_mutex_t lock;
	uint64_t bytes_done, bytes_all;
	struct error failure; /* the first error of a worker thread */
	_Atomic bool failed;
	size_t written; /* number of j.chunks that are in the journal's file */
};

/* place.c: choose the names, take the lock, and read the journal of an earlier attempt.
 * Returns 0 or an error (see merge_begin).  May block for a few seconds. */
int merge_place_open(struct merge *m, struct error *err);
/* Sync the journal's file; returns 0 or -errno. */
int merge_place_sync_journal(struct merge *m, struct error *err);
/* Open the data file: empty, or (resume) cut to the length that the journal says.  The
 * journal is synced first.  Returns 0 or -errno, -EBADMSG if the file is too short. */
int merge_place_data(struct merge *m, bool resume, struct error *err);
/* Sync the data file and rename it to the output; with --delete-parts the journal says
 * first that it is made.  Returns 0 or -errno. */
int merge_place_publish(struct merge *m, struct error *err);
/* Remove the data file and the journal (only the journal if the file was published), and
 * release the lock. */
void merge_place_remove(struct merge *m, bool published);
/* End a merge whose journal says that the file is made: rename it if that was not done,
 * delete the parts and then the journal.  Returns 0, -EBADMSG if the journal belongs to
 * another merge (nothing was touched then), or -errno. */
int merge_place_finish(struct merge *m, struct error *err);
/* Delete the parts that the journal lists, then the journal.  Returns 0, -ESTALE if some
 * parts have changed and stay (everything else is done), or -errno. */
int merge_place_delete_listed(struct merge *m, struct error *err);
/* Return true if both seem to be the same file.  dev is not compared, because it differs
 * from node to node. */
static inline bool merge_same_file(const struct identity *a,
				   const struct identity *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime == b->mtime;
}
/* Return true if the contents seem to be the same.  The inode number is not compared,
 * because it changes when a file is moved to another file system. */
static inline bool merge_place_alike(const struct identity *a,
				     const struct identity *b)
{
	return a->size == b->size && a->mtime == b->mtime;
}
/* Return 0, or -ESTALE if `path` is another file now or has other contents. */
int merge_place_unchanged(const char *path, const struct identity *id,
			  struct error *err);
/* Delete the file of a part if it still is the file that was copied, and count it in
 * result->deleted.  Returns 0 (also if it is gone), -ESTALE if it has changed, or
 * -errno. */
int merge_place_delete(struct merge *m, const char *path,
		       const struct identity *id, struct error *err);

/* look.c: fill m->items with everything that the output will have.  The caller must
 * not hold the library's lock. */
int merge_look(struct merge *m, struct error *err);
/* Return the item of an object, or NULL if the object is not in the list.  Its file must
 * be open in handles. */
const struct item *merge_item_of(struct merge *m, uint32_t file, haddr_t addr);

/* plan.c: make m->streams and m->values, with their tensors, for the items that need
 * them. */
int merge_plan(struct merge *m, struct error *err);
/* Choose the shape of chunks and the filters: those of the parts, or as the user wants
 * them. */
int merge_plan_layout(struct merge *m, struct stream *s, const char *path,
		      struct error *err);
/* Return true, with *out, if tile i of the tensor is a box of it. */
bool merge_tile_box(const struct tensor *t, uint32_t i, struct box *out);

/* check.c: check that all parts are there and right; fill in m->files. */
int merge_check_parts(struct merge *m, struct error *err);
/* Read the flags and, with --check-flag, check that all have its value: 0, -EPERM if not,
 * or -errno. */
int merge_check_flags(struct merge *m, struct error *err);
/* Check that there is room for the output and, with --delete-parts, that parts may be
 * deleted. */
int merge_check_room(struct merge *m, struct error *err);
/* Return the entry of `file` in m->files, which is made if needed; NULL if there is no
 * memory.  While threads check parts, m->lock must be held. */
struct merge_file *merge_file_of(struct merge *m, uint32_t file);

/* resume.c: begin a journal and (--delete-parts) write its plan. */
int merge_journal_begin(struct merge *m, struct error *err);
/* Return NULL if the journal belongs to this merge, else the reason why not. */
const char *merge_journal_foreign(const struct merge *m);
/* Note which files must not be deleted before the end of the merge, or at all. */
int merge_protect_files(struct merge *m, struct error *err);
/* keep.c: note which files must not be deleted because they hold more than the output, or
 * because other programs may need them. */
int merge_keep_files(struct merge *m, struct error *err);
/* Check that files that the journal has under other names have not changed: 0 or
 * -ESTALE. */
int merge_check_renamed(struct merge *m, struct error *err);
/* Return 1 if the work of an earlier attempt was taken over, 0 if the merge begins anew.
 * -EBADMSG or -ESTALE: the earlier attempt has deleted parts, and its files cannot be
 * used. */
int merge_journal_resume(struct merge *m, struct error *err);

/* Return true if all chunks with elements of part p are in the journal; false also where
 * that is not easily known. */
bool merge_part_is_safe(const struct stream *s, uint32_t p);
/* work.c: copy or encode every chunk of every stream, with all threads. */
int merge_work(struct merge *m, struct error *err);
/* Read and decode all chunks, and write nothing, to find errors before parts are
 * deleted. */
int merge_work_rehearse(struct merge *m, struct error *err);
/* chunk.c: what a thread does for one chunk.  Buffers for a chunk, and for its encoded
 * form. */
struct merge_buffers {
	void *plain, *coded;
};
struct merge_pool;
/* The buffers that threads share; their number depends on the options. */
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
	/* The locations that were asked for last. */
	struct tensor *t;
	uint32_t part, n;
	uint64_t first;
	struct location where[TENSOR_SEGMENT];
};
/* Copy or encode chunk `number` of a stream into the data file.  out->len is 0 if the
 * chunk is not stored, because it was never written or has fill values only.  May block
 * for buffers. */
int merge_chunk(struct merge_worker *w, uint32_t stream, uint64_t number,
		struct build_chunk *out, struct error *err);

/* values.c */
/* Read a whole dataset of strings as runs of equal ones, into v->text. */
int merge_values_runs(struct merge *m, struct values *v, struct error *err);
/* Write elements by way of the library: those of VALUES, or (KEPT) of a dataset that is
 * copied as it is, into the open dataset `to` of the output, with the type of `to`.
 * `fill_unknown`: the fill value is not known.  The library's lock must be held; it is
 * released and taken again. */
int merge_values_write(struct merge *m, const struct item *it, hid_t to,
		       bool fill_unknown, struct error *err);

/* make.c: make the file around the chunks, in a process of its own. */
int merge_make_apart(struct merge *m, struct error *err);
/* attr.c: copy the attributes of an object: all without references, or (references) all
 * with references.  The library's lock must be held. */
int merge_attributes(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, bool references, struct error *err);
/* Write the references of a dataset of references; the library's copy has none.  The
 * library's lock must be held. */
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
