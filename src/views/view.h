/* SPDX-License-Identifier: BSD-2-Clause */
/* A view gives names to boxes of a tensor; a file is a header and a box in C order. */
#ifndef VIEWS_VIEW_H
#define VIEWS_VIEW_H

#include "tensor/tensor.h"
#include "tree/files.h"

struct view_options {
	unsigned sample_axes;   /* 1 .. RANK_MAX; default 1 */
	bool sample_axes_given; /* false: a file may suggest another number */
	/* which are listed: bit i is row i of view_table */
	uint64_t views;
	bool source_order; /* dtype-order=source: keep big-endian */
	/* suffixes of files that are values: suffix.h */
	const char *ext;
	const char *labels; /* name of the labels; NULL: search for them */
	bool *labels_found; /* set to true once they are found; may be NULL */
	struct classes *classes; /* labels that are known already; borrowed */
	enum tensor_missing missing;
	struct shards_cut shards; /* for shards/; all zeros: the usual cut */
};
/* Set the default options. */
void view_options_default(struct view_options *o);
/* Set o->views from "array,samples" or "all".  Return 0, or -EINVAL with a sentence
 * that names the unknown view. */
int view_options_parse(struct view_options *o, const char *list,
		       struct error *err);
/* Return the rows of view_table that are called `name` (`len` bytes) as bits; all rows
 * for "all"; 0 if there are none. */
uint64_t view_rows(const char *name, size_t len);
/* Is a view of that name listed? */
bool view_is_listed(const struct view_options *o, const char *name);
/* Return the names of all views with commas between them, for help texts. */
const char *view_names(void);
/* Return how many leading axes a sample of this tensor fixes: as the option says, else
 * as the file suggests; at most the rank.  Each sequence is a sample. */
unsigned view_sample_axes(const struct view_options *o, const struct tensor *t);

/* ---- what a view is ------------------------------------------------------ */

/*
 * A view is one entry of the tensor's directory: a file (levels 0), or a directory of
 * files nested `levels` deep.  Entries are known by their indices, one for each level;
 * `name_of` and `find` convert them to and from names.  A file may have 100 000
 * datasets of many views each, so a struct view is computed when it is needed; a tensor
 * stores only which rows of the table it has.
 */
struct view {
	const struct view_ops *ops;
	struct tensor *tensor;
	uint64_t base;   /* node number of the first entry at level 0 */
	unsigned index;  /* its place in the tensor's directory */
	unsigned levels; /* levels of directories */
	unsigned drop;   /* leading axes that the file's shape lacks */
	unsigned sample_axes;
};
struct view_dirs;
struct view_ops {
	/* for option views=; name NULL: always there */
	const char *name, *summary;
	const char *top; /* its name in the tensor's directory */
	/* Optional: set up and free what the view keeps of a tensor (views/state.h).
	 * Rows that keep the same may have the same functions. */
	void (*begin)(struct tensor *t);
	void (*end)(struct tensor *t);
	/* Levels of directories; with `samples`, one for each sample axis, and the
	 * shapes of its files lack these axes. */
	unsigned levels;
	bool samples;
	unsigned (*levels_of)(const struct tensor *t); /* instead of levels */
	/* Optional: entries that are files before the last level. */
	bool (*is_leaf)(const struct view *v, unsigned depth,
			const uint64_t *at);
	/* Does the tensor have this view?  May add a note (view_add_note) if not. */
	bool (*fits)(struct tensor *t, unsigned sample_axes);
	/* Return the number of entries in each directory of a level. */
	uint64_t (*count)(const struct view *v, unsigned level);
	/* Write the name of the entry with these indices at `level`. */
	void (*name_of)(const struct view *v, unsigned level,
			const uint64_t *at, char *buf, size_t n);
	/* Set *index to the index at `level` of the entry with this name; at[0..level)
	 * are known.  Return 0 or -ENOENT. */
	int (*find)(const struct view *v, unsigned level, const uint64_t *at,
		    const char *name, uint64_t *index);
	/* Optional: set a sentence about a name that `find` refuses.  Return false if
	 * there is nothing to say. */
	bool (*why_not)(const struct view *v, const char *name,
			struct error *err);
	/* Set *out to the elements that the file has; NULL: it has no elements. */
	void (*box_of)(const struct view *v, const uint64_t *at,
		       struct box *out);
	/* Optional: set `shape` (room for RANK_MAX) to the file's shape and return its
	 * rank, if that is not the shape of its box without the first `drop` axes. */
	unsigned (*shape_of)(const struct view *v, const uint64_t *at,
			     uint64_t *shape);
	/* A .npy header comes first. */
	bool npy;
	/* Directories of its own kind (views/node.h); name_of and find are not used. */
	const struct view_dirs *dirs;
	/* Optional: return a generation, for entries whose node numbers mean something
	 * else in another mount. */
	uint32_t (*generation)(const struct view *v, const uint64_t *at);
	/* Optional, as files_ops.hold, for all entries at every level. */
	int (*hold)(const struct view *v, const uint64_t *at, int64_t n);
	/* Entries can be looked up, but are never listed. */
	bool lookup_only;
	/* Not listed unless option views= names it; it can be looked up all the same. */
	bool unlisted;
	/*
	 * Files that are texts (or a few bytes) generated when they are read: all files
	 * of the view, or those for which is_document is true.  Return malloc'ed text
	 * of *len bytes, or NULL with an error.
	 */
	char *(*document)(const struct view *v, const uint64_t *at, size_t *len,
			  struct error *err);
	/* If it is never true, `document` makes a part of the file: block at[0] of a
	 * view with levels 0. */
	bool (*is_document)(const struct view *v, const uint64_t *at);
	/* Optional: read what documents need and only a pinner can read.  Called before
	 * they are made. */
	int (*ready)(const struct view *v, struct pinner *p, struct error *err);
	/* Optional, as files_ops.skip: move *i to the first index of this level from *i
	 * on whose entry exists.  Other indices have a number and a name, but `size`
	 * returns -ENOENT. at[level] is overwritten. */
	int (*skip)(const struct view *v, unsigned level, uint64_t *at,
		    uint64_t *i, struct pinner *p, struct error *err);
	/* Return the suffix of the names of samples; NULL: .npy or .txt. */
	const char *(*suffix)(const struct view *v);
	/* Instead of `npy`: write the bytes before the box, at most VIEW_HEADER_MAX;
	 * return how many. */
	size_t (*header)(const struct view *v, const uint64_t *at,
			 unsigned char *out);
	/* As files_ops.reversed, for the bytes behind the header: return the bytes of a
	 * number whose byte order is reversed, or 0. */
	unsigned (*reversed)(const struct view *v);
	/* Set *size to the bytes of a file that is not just a header and a box (texts,
	 * sequences). */
	int (*size)(const struct view *v, const uint64_t *at, struct pinner *p,
		    uint64_t *size, struct error *err);
	/* `size` neither pins nor blocks, and its `p` may be NULL. */
	bool size_is_known;
	/* As files_ops.prepare; NULL: there is nothing to prepare. */
	int (*prepare)(const struct view *v, const uint64_t *at, uint64_t off,
		       uint64_t len, struct error *err);
	/* As files_ops.map. */
	int (*map)(const struct view *v, const uint64_t *at, uint64_t off,
		   struct plan *plan, struct error *err);
	/* Optional: write the xattr left_out, lines about what the file lacks, and
	 * return its length; 0: nothing is left out. */
	ssize_t (*left_out)(const struct view *v, const uint64_t *at,
			    struct pinner *p, char *buf, size_t n);
};
#define VIEW_HEADER_MAX 512
/* The table ends with NULL. */
extern const struct view_ops *const view_table[];

/* ---- a tensor's directory ------------------------------------------------ */

/* Make the directory of a tensor.  It takes over the tensor, also on errors.  Return 0
 * or -errno. */
int tensor_files_new(struct files **out, struct tensor *t,
		     const struct view_options *o, struct error *err);
/* Return the tensor behind a node's files, or NULL if they are not those of a tensor. */
struct tensor *tensor_of_files(const struct files *f);
/* Elements of one sample, and the chunks and bytes that reading it decodes (the worst
 * case over the chunk grid of a learnt part); for `info`. */
struct sample_cost {
	uint64_t elements, bytes, chunks, decoded;
};
int tensor_sample_cost(struct tensor *t, unsigned axes, struct sample_cost *out,
		       struct error *err);

/* Set up the tensor's chunk set of documents, in which each document is a chunk that is
 * made when it is read. */
void tensor_document_init(struct tensor *t);
/* Return the number of the chunk that holds the document with indices `at` of a view. */
uint64_t tensor_document_chunk(const struct view *v, const uint64_t *at);
/* Return the text of info.json (malloc'ed), for `info` and the view; NULL with an
 * error. */
char *tensor_info_text(struct tensor *t, struct error *err);
/* Return dtype_descr in full (malloc'ed); NULL without memory. */
char *tensor_descr_text(const struct dtype *d);
/* Return how many files hold contiguous data that is not in the HDF5 file itself. */
uint32_t layout_external_files(const struct layout *l);

#endif
