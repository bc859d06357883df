/* SPDX-License-Identifier: BSD-2-Clause */
/* A view names boxes; a file is a header and a box in C order. */
#ifndef VIEWS_VIEW_H
#define VIEWS_VIEW_H

#include "tensor/tensor.h"
#include "tree/files.h"

struct view_options {
	unsigned sample_axes;   /* 1 .. RANK_MAX; default 1 */
	bool sample_axes_given; /* else files may suggest another number */
	uint64_t views;         /* listed: bit i, row i of view_table */
	bool source_order;      /* dtype-order=source: keep big-endian */
	const char *ext;        /* of files that are values: suffix.h */
	const char *labels;     /* what has them; NULL: look around */
	bool *labels_found; /* set where these are somebody's; may be NULL */
	struct classes *classes; /* or they are known; borrowed */
	enum tensor_missing missing;
	struct shards_cut shards; /* of shards/; zeros: usual ones */
};
void view_options_default(struct view_options *o);
/* "array,samples" or "all"; -EINVAL names the unknown one. */
int view_options_parse(struct view_options *o, const char *list,
		       struct error *err);
/* Rows of view_table that are called `name` (of `len` bytes); "all": all.  0: none. */
uint64_t view_rows(const char *name, size_t len);
/* Is a view of that name among those that are listed? */
bool view_is_listed(const struct view_options *o, const char *name);
/* Comma-separated names of all views, for help. */
const char *view_names(void);
/* Leading axes that a sample of this tensor fixes: as given, else as its file
 * suggests; at most its rank.  Sequences are a sample each. */
unsigned view_sample_axes(const struct view_options *o, const struct tensor *t);

/* ---- what a view is ------------------------------------------------------ */

/*
 * A view is one entry of the tensor's directory: a file (levels 0), or a
 * directory of files nested `levels` deep.
 * Entries are known by their indices, one a level; `name` and `find` spell them.
 * There are five for each of 100 000 datasets, so views are worked out when they
 * are asked for, and kept is only which rows of the table a tensor has.
 */
struct view {
	const struct view_ops *ops;
	struct tensor *tensor;
	uint64_t base;   /* node number of the first entry at level 0 */
	unsigned index;  /* in the tensor's directory */
	unsigned levels; /* of directories */
	unsigned drop;   /* leading axes that the file's shape lacks */
	unsigned sample_axes;
};
struct view_dirs;
struct view_ops {
	const char *name, *summary; /* of option views=; NULL: always there */
	const char *top;            /* name in the tensor's directory */
	/* Optional: set up what the view keeps of a tensor (views/state.h), and free it.
	 * Rows that keep the same may all have the same functions. */
	void (*begin)(struct tensor *t);
	void (*end)(struct tensor *t);
	/* Levels; with `samples`, one for each sample axis, which the shapes of
	 * its files lack. */
	unsigned levels;
	bool samples;
	unsigned (*levels_of)(const struct tensor *t); /* instead of levels */
	/* Optional: entries that are files before the last level. */
	bool (*is_leaf)(const struct view *v, unsigned depth,
			const uint64_t *at);
	/* Is it for this tensor?  May leave a note why not. */
	bool (*fits)(struct tensor *t, unsigned sample_axes);
	/* Entries in each directory of a level. */
	uint64_t (*count)(const struct view *v, unsigned level);
	/* The entry with these indices at `level`. */
	void (*name_of)(const struct view *v, unsigned level,
			const uint64_t *at, char *buf, size_t n);
	/* Index at `level` of an entry's name; at[0..level) are known. */
	int (*find)(const struct view *v, unsigned level, const uint64_t *at,
		    const char *name, uint64_t *index);
	/* Optional: a sentence about a name that find refuses; false: none. */
	bool (*why_not)(const struct view *v, const char *name,
			struct error *err);
	/* Which elements the file is about; NULL: no elements. */
	void (*box_of)(const struct view *v, const uint64_t *at,
		       struct box *out);
	/* Optional: the file's shape (room for RANK_MAX), where it is not that
	 * of its box without the axes that `drop` has; its rank. */
	unsigned (*shape_of)(const struct view *v, const uint64_t *at,
			     uint64_t *shape);
	/* A header comes first. */
	bool npy;
	/* Directories of its own kind (views/node.h); name_of and find are not used. */
	const struct view_dirs *dirs;
	/* Of entries whose numbers mean something else in another mount. */
	uint32_t (*generation)(const struct view *v, const uint64_t *at);
	/* As files.hold, of all entries at every level. */
	int (*hold)(const struct view *v, const uint64_t *at, int64_t n);
	/* Entries are found, and never listed. */
	bool lookup_only;
	/* Not in listings unless option views= names it; there all the same. */
	bool unlisted;
	/*
	 * Files that are texts (or a few bytes) made when they are read: all of the view's,
	 * or those that is_document says.  malloc'ed, *len bytes; NULL and err.
	 */
	char *(*document)(const struct view *v, const uint64_t *at, size_t *len,
			  struct error *err);
	/* One that is never is made of blocks: at[0], of levels 0. */
	bool (*is_document)(const struct view *v, const uint64_t *at);
	/* Optional: what documents need that only a pinner can have; before they are made. */
	int (*ready)(const struct view *v, struct pinner *p, struct error *err);
	/* Optional, as files.skip: to the first index of this level from *i on that is
	 * there.  Others have a number and a name, and `size` says -ENOENT.  at[level]
	 * is overwritten. */
	int (*skip)(const struct view *v, unsigned level, uint64_t *at,
		    uint64_t *i, struct pinner *p, struct error *err);
	/* Of the names of samples; NULL: .npy, or .txt. */
	const char *(*suffix)(const struct view *v);
	/* Instead of npy: bytes before the box, at most VIEW_HEADER_MAX; how many. */
	size_t (*header)(const struct view *v, const uint64_t *at,
			 unsigned char *out);
	/* As files.reversed, of what is behind the header: bytes of a number. */
	unsigned (*reversed)(const struct view *v);
	/* Files that are not the bytes of their box (texts, sequences). */
	int (*size)(const struct view *v, const uint64_t *at, struct pinner *p,
		    uint64_t *size, struct error *err);
	/* `size` is arithmetic: neither pins nor blocks; `p` may be NULL. */
	bool size_is_known;
	/* As files.prepare; NULL: nothing to learn. */
	int (*prepare)(const struct view *v, const uint64_t *at, uint64_t off,
		       uint64_t len, struct error *err);
	int (*map)(const struct view *v, const uint64_t *at, uint64_t off,
		   struct plan *plan, struct error *err);
	/* Optional: xattr left_out, lines of what a file lacks; length 0: nothing. */
	ssize_t (*left_out)(const struct view *v, const uint64_t *at,
			    struct pinner *p, char *buf, size_t n);
};
#define VIEW_HEADER_MAX 512
/* Rows end with NULL. */
extern const struct view_ops *const view_table[];

/* ---- a tensor's directory ------------------------------------------------ */

/* The directory of a tensor: its views as files.  Owns the tensor, also when
 * it fails. */
int tensor_files_new(struct files **out, struct tensor *t,
		     const struct view_options *o, struct error *err);
/* The tensor behind a node's files, or NULL when it is something else. */
struct tensor *tensor_of_files(const struct files *f);
/* Elements of one sample, and the chunks and bytes that reading it decodes
 * (worst case over the chunk grid of a learnt part); for `info`. */
struct sample_cost {
	uint64_t elements, bytes, chunks, decoded;
};
int tensor_sample_cost(struct tensor *t, unsigned axes, struct sample_cost *out,
		       struct error *err);

/* Documents are a chunk set of the tensor's, a chunk each, made when they are read. */
void tensor_document_init(struct tensor *t);
/* The chunk that is the document at `at` of a view. */
uint64_t tensor_document_chunk(const struct view *v, const uint64_t *at);
/* The text of info.json (malloc'ed), for `info` and the view. */
char *tensor_info_text(struct tensor *t, struct error *err);
/* dtype_descr, however long (malloc'ed); NULL: no memory. */
char *tensor_descr_text(const struct dtype *d);
/* Files that hold contiguous data which is not in the HDF5 file itself. */
uint32_t layout_external_files(const struct layout *l);

#endif
