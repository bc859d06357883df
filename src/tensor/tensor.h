/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor: parts laid over an array, each a dataset stored in its own way. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "extent/chunk.h"
#include "extent/pinner.h"
#include "shards/cut.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"
#include "tensor/mosaic.h"

struct tensor;

enum layout_kind {
	LAYOUT_CHUNKED, /* a grid of chunks, located through index pages */
	LAYOUT_LINEAR,  /* contiguous, in one file or in several */
	LAYOUT_FETCHED, /* small data that the source reads (compact) */
	LAYOUT_ABSENT,  /* never written: all fill value */
	LAYOUT_NESTED   /* itself a mosaic of parts */
};
/* A part of contiguous data that lies in one file. */
struct stretch {
	uint64_t begin; /* offset of its first byte in the stored data */
	uint32_t file;
	uint64_t pos, len; /* its place in the file, in bytes */
};
/* How the dataset behind one part is stored; immutable once published. */
struct layout {
	enum layout_kind kind;
	uint32_t file;
	bool by_library;   /* CHUNKED, LINEAR: ops->fetch decodes */
	const char *maker; /* by_library: the decoder; NULL: libhdf5 */
	/* CHUNKED: the layout that the file really has, "contiguous", where the source
	 * cuts its data into chunks; or NULL. */
	const char *called;
	bool indexed;   /* by_library: ops->locate knows which chunks exist */
	bool joined;    /* `file` is several joined ones: handles_in_one */
	bool raw_edges; /* partial edge chunks were stored unfiltered */
	uint64_t pos;   /* LINEAR without stretches: offset in the file */
	uint32_t nstretches;
	const struct stretch *stretches; /* sorted by `begin`, without gaps */
	/* Grid, pipeline and recode are shared by parts that are alike, and owned by the
	 * source. */
	const struct grid *grid; /* in served elements; LINEAR: one chunk */
	const struct pipeline *pipeline;
	const struct recode *recode; /* NULL: served as stored */
	struct fill fill;            /* served; the source owns the pattern */
	struct tensor *nested;       /* NESTED: owned */
};

/* A dataset that the tensor takes elements from. */
struct part {
	uint32_t file;
	const char *dataset; /* its path in that file; owned by the source */
	_Atomic(const struct layout *) layout; /* NULL: not opened yet */
	/* chunks that were written, plus 1; 0: unknown */
	_Atomic uint64_t written;
};

/* Where one chunk is stored. */
struct location {
	uint64_t pos; /* UINT64_MAX: never written */
	uint64_t stored;
	uint64_t mask;
};
/* A chunk that was written. */
struct written {
	uint64_t chunk;
	struct location at;
};

struct tensor_ops {
	/* Open part `p` and learn its layout, which is malloc'ed and goes to the
	 * tensor.  Blocks. */
	int (*learn)(struct tensor *t, uint32_t p, struct layout **out,
		     struct error *err);
	/* Find the locations of chunks [first, first + n) of the part's grid, n > 0.
	 * Blocks. */
	int (*locate)(struct tensor *t, uint32_t p, const struct layout *l,
		      uint64_t first, uint32_t n, struct location *out,
		      struct error *err);
	/* List chunks of the part's grid that were written: the first `room` of them
	 * from chunk *from on, in order, each located as by `locate`.  *from becomes
	 * the chunk to go on with; UINT64_MAX at the end, and `parts[p].written` is set
	 * then.  Return 0; 1 if all chunks were written back to back, from
	 * out[0].at.pos on, each with as many bytes; -ENOTSUP if this is not known, or
	 * if there are so many that `locate` serves better; -EBADMSG if the index
	 * contradicts itself.  For `verify` and `info`; NULL: never known. */
	int (*list)(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t *from, struct written *out, uint32_t room,
		    uint32_t *n, struct error *err);
	/* Read all bytes of one chunk (LAYOUT_FETCHED: of the only one): as stored,
	 * with `size` in stored bytes; or as served if l->by_library.  Bytes that
	 * overhang the array's edge are zero.  Blocks. */
	int (*fetch)(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t chunk, void *out, size_t size, struct error *err);
	/* Write what decides the bytes that `fetch` makes of part p, which has
	 * l->by_library: the array of the file, the piece of it, and every option.
	 * l->file, and what `chunk_set_ops.origin` of all tensors writes (chunk, grid,
	 * served type, names), are left out.  Return false if that cannot be said;
	 * NULL: never. */
	bool (*origin)(const struct tensor *t, uint32_t p, FILE *out);
	/* Read the elements of a box of part p's dataset in C order and call `put` once
	 * for each: with its text (STRING, TEXT), its bytes (BLOB), or the elements of
	 * a sequence in served byte order (RAGGED).  Blocks. */
	int (*values)(struct tensor *t, uint32_t p, const struct box *b,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);
	/* Optional: set *bytes to what `values` would pass for a box of one element,
	 * without reading it.  Return 1 if known, 0 if the element has to be read,
	 * -errno on errors. */
	int (*length)(struct tensor *t, uint32_t p, const struct box *b,
		      uint64_t *bytes, struct error *err);
	/* Optional: do checksums that the source compares cover the bytes that `fetch`
	 * and `values` make part p of?  Blocks.  NULL: only checksums among its filters
	 * do. */
	bool (*has_checksum)(struct tensor *t, uint32_t p);
	/* Return the attributes as a JSON object (malloc'ed text), or NULL with an
	 * error. */
	char *(*attributes)(struct tensor *t, struct error *err);
	/* Return what the source adds to info.json, a JSON object (malloc'ed text):
	 * `attributes`; `unreadable_attributes`, the names of those that cannot be
	 * read, and why; where the file says so, `axes`, an object or null for each,
	 * and `metadata`. */
	char *(*about)(struct tensor *t, struct error *err);
	/* Optional: return the tensor as an HDF5 file without its data, as in
	 * monolith.h (malloc'ed, *len bytes).  Blocks. */
	char *(*monolith)(struct tensor *t, size_t *len, struct error *err);
	void (*free)(struct tensor *t);
};
enum tensor_missing { MISSING_ERROR, MISSING_FILL };

#define TENSOR_SUFFIX_MAX 16

struct classes;
struct text;
struct view_state;
struct tensor {
	struct chunk_set set; /* first member: all chunks of all parts */
	const struct tensor_ops *ops;
	struct handles *handles;
	struct dtype dtype;  /* element type as served */
	struct dtype stored; /* element type in the file */
	const char *descr;   /* STRUCT: dtype_descr; owned by the source */
	/* If not NULL, the tensor is this field of each stored element. */
	const struct dtype_field *field;
	unsigned rank;
	const uint64_t *shape; /* [rank]; owned by the source */
	/*
	 * Lengths of the dimensions of its axes, where arrays of the file share
	 * dimensions and one is longer than `shape`: everything beyond `shape` is fill
	 * value.  For views that show arrays side by side (Zarr).  Owned by the source;
	 * NULL: as `shape`.
	 */
	const uint64_t *full_shape;
	bool only_dimension; /* its writer meant a named length, not an array */
	/* `bytes` is the size of array.bin, 0 for strings.  If rank and elements are 0, the
	 * shape is unknown or null. */
	uint64_t elements, bytes;
	int64_t mtime;
	enum tensor_missing missing;
	uint32_t nparts;
	struct part *parts;
	/* owned; gaps are fill value; NULL: part 0 is all */
	struct mosaic *mosaic;
	struct fill fill;        /* of gaps and missing parts; as layout.fill */
	unsigned depth;          /* how deep it is nested in other tensors */
	_Atomic uint32_t learnt; /* number of parts with a layout */
	_Atomic bool nests;      /* some of these are NESTED */
	struct tensor *flags;    /* a string for each row; borrowed; or NULL */
	struct classes *classes; /* labels of its samples; borrowed; or NULL */
	struct view_state *views; /* state of its files; NULL: no files */
	/* Lengths of the same axis differ among its siblings. */
	bool sized_axes;
	/* Upper bound of the mean bytes of a string or a sequence; 0: unknown */
	uint64_t text_bytes;
	unsigned sample_axes; /* sample axes that the file suggests; 0: none */
	/* name of a missing filter that chunks may need; or NULL */
	char *unreadable;
	/* do chunks need it? 0: unknown yet, 1: yes, 2: no */
	_Atomic int undecoded;
	struct text *text; /* values of STRING, TEXT, RAGGED and BLOB */
	/* BLOB: suffix of its files: ".jpg" */
	char suffix[TENSOR_SUFFIX_MAX + 1];
	char *why_not; /* why it is listed but not shown; NULL: it is shown */
	int why_code;  /* why_not: -ENOTSUP if it is intact; else the error */
	struct shards_cut shards; /* how shards/ is cut */
	/* which views are left out, and why; or NULL */
	char *note;
	char *name; /* its name in sentences: "/data" */
	/* path of the main file; owned by the source */
	const char *source;
};
static inline bool tensor_has_shape(const struct tensor *t)
{
	return t->rank || t->elements;
}

/* Set *out to the whole tensor. */
static inline void tensor_whole_box(const struct tensor *t, struct box *out)
{
	for (unsigned i = 0; i < t->rank; i++) {
		out->start[i] = 0;
		out->count[i] = t->shape[i];
	}
}

/* Is it a virtual dataset, whose parts may be several, or in other files? */
static inline bool tensor_is_distributed(const struct tensor *t)
{
	return t->mosaic != NULL;
}
/* Return the part that the whole box lies in; -1 if it lies in several, or in a gap. */
int64_t tensor_part_of(const struct tensor *t, const struct box *b);
/* Return the number of chunks of a learnt part (contiguous data: of pieces, see below). */
uint64_t layout_chunks(const struct layout *l);
/* LINEAR, recoded or in several files: return the served bytes of a piece, which has
 * whole elements. */
uint64_t layout_piece(const struct layout *l);
/* Set *out to the layout of part p, which is learnt if it is not known; the tensor owns
 * it.  May block. */
int tensor_learn(struct tensor *t, uint32_t p, const struct layout **out,
		 struct error *err);
/* Learn every part that a window of a box touches: bytes [off, off + len).  For
 * `files.prepare`.  May block. */
int tensor_prepare_box(struct tensor *t, const struct box *b, uint64_t off,
		       uint64_t len, struct error *err);
/* Append the extents of the box's bytes from `off` on (see files.map).  The window must
 * have been prepared; does not block. */
int tensor_map_box(const struct tensor *t, const struct box *b, uint64_t off,
		   struct plan *plan, struct error *err);
/*
 * Append box `b`, which has one index of `axis` and of the axes before it, and those of
 * the n - 1 boxes `step` apart from it along `axis` that lie in the same chunk, as a
 * strip of rows.  Return the bytes appended; 0 if it has to go box by box.
 */
uint64_t tensor_map_steps(const struct tensor *t, const struct box *b,
			  unsigned axis, uint64_t step, uint64_t n,
			  struct plan *plan);
/*
 * Find the part that element `at` (in C order) of box `b` is in (-1: a gap), and how
 * many elements of the box from there on are elements [skip, skip + run) of box `from`
 * of that part's dataset.  Learns the part, so it may block.
 */
int tensor_find(struct tensor *t, const struct box *b, uint64_t at,
		int64_t *part, struct mosaic_piece *out, struct error *err);
/*
 * A chunk's number in the set is part << 40 | chunk of the part's grid.  Contiguous
 * data that needs recoding is cut into pieces of about TENSOR_PIECE bytes, whole
 * elements, which count as its chunks.
 */
#define TENSOR_CHUNK_BITS 40
/* Return t->unreadable if some chunk needs that filter (each chunk says whether it was
 * stored without); NULL if the tensor can be read whole.  The first call blocks: it
 * looks at up to 2^20 chunks. */
const char *tensor_undecoded(struct tensor *t);
#define TENSOR_SEGMENT 1024 /* locations in an index page, 24 KiB */
#define TENSOR_CHUNK_MAX (UINT64_C(1) << TENSOR_CHUNK_BITS)
#define TENSOR_PARTS_MAX (UINT32_C(1) << 24)
#define TENSOR_PIECE (UINT64_C(1) << 20)
#define TENSOR_DEPTH_MAX 16 /* mosaics nested in mosaics */
static inline uint64_t tensor_chunk_id(uint32_t part, uint64_t chunk)
{
	return (uint64_t)part << TENSOR_CHUNK_BITS | chunk;
}
/* Free a tensor, which may be NULL, by its source's `free` if there is one. */
void tensor_free(struct tensor *t);

/* Return the number of stored blocks: those of the mosaic if there is one, else the
 * chunks. tensor_divides says whether axis `axis` is part of a block's name. */
uint64_t tensor_blocks(const struct tensor *t);
bool tensor_divides(const struct tensor *t, unsigned axis);
void tensor_block_box(const struct tensor *t, uint64_t block, struct box *out);
/* Set *block to the block with exactly this box.  Return 0 or -ENOENT. */
int tensor_block_find(const struct tensor *t, const struct box *b,
		      uint64_t *block);
/* Write the flags of rows [first, last) as one value: the flag that all have, "mixed",
 * or "" without flags.  Blocks. */
int tensor_rows_flag(struct tensor *t, uint64_t first, uint64_t last,
		     struct pinner *p, char *buf, size_t n, struct error *err);
/* Write the flags of the rows of a block in the same way. */
int tensor_block_flag(struct tensor *t, uint64_t block, struct pinner *p,
		      char *buf, size_t n, struct error *err);

/* Operations of tensor.set, for sources that make a tensor. */
extern const struct chunk_set_ops tensor_chunk_ops;

#endif
