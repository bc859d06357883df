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
	LAYOUT_CHUNKED, /* grid of chunks, found through segments */
	LAYOUT_LINEAR,  /* contiguous, in one file or in several */
	LAYOUT_FETCHED, /* small, made by the source (compact) */
	LAYOUT_ABSENT,  /* never written: all fill value */
	LAYOUT_NESTED   /* itself a mosaic of parts */
};
/* A piece of contiguous data in a file. */
struct stretch {
	uint64_t begin; /* its first byte's offset in the stored data */
	uint32_t file;
	uint64_t pos, len; /* where it is */
};
/* How the dataset behind one part is stored; immutable once published. */
struct layout {
	enum layout_kind kind;
	uint32_t file;
	bool by_library;   /* CHUNKED, LINEAR: ops->fetch makes the chunks */
	const char *maker; /* by_library: who that is; NULL: libhdf5 */
	/* CHUNKED: what the file has instead, which is cut into pieces; or NULL. */
	const char *called;
	bool indexed;   /* by_library: and ops->locate knows which there are */
	bool joined;    /* `file` is several that are one: handles_in_one */
	bool raw_edges; /* partial edge chunks were stored unfiltered */
	uint64_t pos;   /* LINEAR: first byte in the file, unless: */
	uint32_t nstretches;
	const struct stretch *stretches; /* by `begin`, without gaps */
	/* Shared by parts that are alike, owned by the source: */
	const struct grid *grid; /* of the dataset, in served elements; LINEAR:
				  * one chunk */
	const struct pipeline *pipeline;
	const struct recode *recode; /* NULL: served as stored */
	struct fill fill;            /* served; pattern owned by the source */
	struct tensor *nested;       /* NESTED; owned */
};

/* A dataset that the tensor takes elements from. */
struct part {
	uint32_t file;
	const char *dataset; /* its path in that file; the source's */
	_Atomic(const struct layout *) layout; /* NULL: not opened yet */
	_Atomic uint64_t written; /* chunks its index counts, plus 1; 0: ? */
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
	/* Open part `p` and learn its layout; blocks on I/O.  The layout is
	 * malloc'ed, ownership goes to the tensor. */
	int (*learn)(struct tensor *t, uint32_t p, struct layout **out,
		     struct error *err);
	/* Locations of chunks [first, first + n) of the part's grid, n > 0. */
	int (*locate)(struct tensor *t, uint32_t p, const struct layout *l,
		      uint64_t first, uint32_t n, struct location *out,
		      struct error *err);
	/* The chunks of the part's grid that were written: the first `room` of
	 * them from chunk *from on, in order, each as `locate` finds it.  *from
	 * becomes where to go on, UINT64_MAX: there are no more, and
	 * `parts[p].written` is set.  1: all were, back to back, from
	 * out[0].at.pos on, each of as many bytes.
	 * -ENOTSUP: this is not known, or they are so many that `locate` serves
	 * better; -EBADMSG: the index contradicts itself.  For `verify` and
	 * `info`; NULL: never known. */
	int (*list)(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t *from, struct written *out, uint32_t room,
		    uint32_t *n, struct error *err);
	/* All bytes of one chunk (LAYOUT_FETCHED: of the only one), as stored
	 * (`size` is then in stored bytes); with l->by_library, as served.
	 * What overhangs the edge is zero. */
	int (*fetch)(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t chunk, void *out, size_t size, struct error *err);
	/* What decides the bytes that `fetch` makes of part p, which has
	 * l->by_library, beside l->file and what `chunk_set_ops.origin` of all
	 * tensors says (chunk, grid, served type, names): which array of the file
	 * it is, which piece of it, and every option.  False: that cannot be said;
	 * NULL: never. */
	bool (*origin)(const struct tensor *t, uint32_t p, FILE *out);
	/* The elements of a box of part p's dataset in C order, as text (STRING,
	 * TEXT) or as bytes (BLOB), those of a sequence in served order
	 * (RAGGED); calls `put` once for each. */
	int (*values)(struct tensor *t, uint32_t p, const struct box *b,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);
	/* Optional: the bytes that `values` would have for a box of one element,
	 * without reading them.  1: known, 0: it has to be read after all. */
	int (*length)(struct tensor *t, uint32_t p, const struct box *b,
		      uint64_t *bytes, struct error *err);
	/* Optional: do checksums that the source compares cover the bytes that `fetch`
	 * and `values` make part p of?  Blocks.  NULL: those of its filters, if any. */
	bool (*has_checksum)(struct tensor *t, uint32_t p);
	/* Attributes as a JSON object (malloc'ed text). */
	char *(*attributes)(struct tensor *t, struct error *err);
	/* What info.json has beyond what we know ourselves, a JSON object
	 * (malloc'ed text): `attributes`; of those that cannot be read, names and
	 * why, `unreadable_attributes`; where the file says, `axes`, for each an
	 * object or null, and `metadata`. */
	char *(*about)(struct tensor *t, struct error *err);
	/* Optional.  The tensor as an HDF5 file without its data, as in monolith.h
	 * (malloc'ed, *len bytes).  Blocks. */
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
	struct dtype dtype;  /* as served */
	struct dtype stored; /* as in the file */
	const char *descr;   /* STRUCT: dtype_descr; the source's */
	/* Not NULL: the tensor is this field of each stored element. */
	const struct dtype_field *field;
	unsigned rank;
	const uint64_t *shape; /* [rank]; the source's */
	/*
	 * Lengths of the dimensions that its axes are of, where the file shares
	 * them among arrays and one is longer than `shape`: what is beyond that is
	 * fill value.  For views that show arrays side by side (Zarr); the
	 * source's.  NULL: as `shape`.
	 */
	const uint64_t *full_shape;
	bool only_dimension; /* a length with a name, no array to its writer */
	uint64_t elements, bytes; /* bytes of array.bin; 0 for strings.  Without
				* axes and elements: the shape is not known,
				* or null */
	int64_t mtime;
	enum tensor_missing missing;
	uint32_t nparts;
	struct part *parts;
	struct mosaic *mosaic;   /* NULL: part 0 is all of it; else owned, and
				* gaps are fill */
	struct fill fill;        /* of gaps and missing parts; as layout.fill */
	unsigned depth;          /* of nesting in other tensors */
	_Atomic uint32_t learnt; /* parts with a layout; */
	_Atomic bool nests;      /* some of them are NESTED */
	struct tensor *flags;    /* strings, one a row; borrowed; or NULL */
	struct classes *classes; /* labels of its samples; borrowed; or NULL */
	struct view_state *views; /* of its files; NULL: it has none */
	/* Axes of the same number differ in size among its siblings. */
	bool sized_axes;
	/* Mean bytes of a string or a sequence, at most; 0: unknown */
	uint64_t text_bytes;
	unsigned sample_axes; /* that the file suggests; 0: it does not */
	char *unreadable;     /* chunks may need a filter that we lack: which */
	_Atomic int undecoded; /* do they?  0: not asked yet, 1: yes, 2: no */
	struct text *text;     /* STRING, TEXT, RAGGED, BLOB: its values */
	char suffix[TENSOR_SUFFIX_MAX + 1]; /* BLOB: of its files: ".jpg" */
	char *why_not; /* not NULL: listed, not shown, and why; */
	int why_code;  /* -ENOTSUP: nothing is wrong with it; else what is */
	struct shards_cut shards; /* of shards/ */
	char *note;               /* what was left out, and why; or NULL */
	char *name;               /* "/data", for sentences */
	const char *source;       /* path of the main file; the source's */
};
static inline bool tensor_has_shape(const struct tensor *t)
{
	return t->rank || t->elements;
}

/* All of the tensor. */
static inline void tensor_whole_box(const struct tensor *t, struct box *out)
{
	for (unsigned i = 0; i < t->rank; i++) {
		out->start[i] = 0;
		out->count[i] = t->shape[i];
	}
}

/* True when parts are in other files or several (a virtual dataset). */
static inline bool tensor_is_distributed(const struct tensor *t)
{
	return t->mosaic != NULL;
}
/* The only part that a box lies in; -1: several, or a gap. */
int64_t tensor_part_of(const struct tensor *t, const struct box *b);
/* Chunks of a learnt part (pieces of contiguous data, see below). */
uint64_t layout_chunks(const struct layout *l);
/* LINEAR, recoded or in several files: served bytes of a piece, whole
 * elements. */
uint64_t layout_piece(const struct layout *l);
/* The layout of part p, learnt if need be.  May block. */
int tensor_learn(struct tensor *t, uint32_t p, const struct layout **out,
		 struct error *err);
/* Learn every part that the window of a box touches, as `files.prepare` wants. */
int tensor_prepare_box(struct tensor *t, const struct box *b, uint64_t off,
		       uint64_t len, struct error *err);
/* Append the extents of the box's bytes from `off` on (see files.map). */
int tensor_map_box(const struct tensor *t, const struct box *b, uint64_t off,
		   struct plan *plan, struct error *err);
/*
 * Box b, which has one index of `axis` and of those before it, and the n - 1 that
 * are `step` apart from it along that axis: a band of those in the same chunk, where
 * that is one.  The bytes taken; 0: go box by box.
 */
uint64_t tensor_map_steps(const struct tensor *t, const struct box *b,
			  unsigned axis, uint64_t step, uint64_t n,
			  struct plan *plan);
/*
 * Element `at` (in C order) of box b: the part it is in (-1: a gap), and how
 * many elements follow in the box that are elements [skip, skip + run) of box
 * `from` of that part's dataset.  Learns the part.  May block.
 */
int tensor_find(struct tensor *t, const struct box *b, uint64_t at,
		int64_t *part, struct mosaic_piece *out, struct error *err);
/*
 * Chunk numbers of the set: part << 40 | chunk of the part's grid.  Contiguous
 * data that needs recoding is cut into pieces of about TENSOR_PIECE bytes, whole
 * elements, which count as its chunks.
 */
#define TENSOR_CHUNK_BITS 40
/* t->unreadable, unless no chunk needs that filter (each says that it was stored
 * without); NULL: it reads whole.  Blocks: looks at up to 2^20 places, once. */
const char *tensor_undecoded(struct tensor *t);
#define TENSOR_SEGMENT 1024 /* locations fetched at once; 24 KiB */
#define TENSOR_CHUNK_MAX (UINT64_C(1) << TENSOR_CHUNK_BITS)
#define TENSOR_PARTS_MAX (UINT32_C(1) << 24)
#define TENSOR_PIECE (UINT64_C(1) << 20)
#define TENSOR_DEPTH_MAX 16 /* mosaics in mosaics */
static inline uint64_t tensor_chunk_id(uint32_t part, uint64_t chunk)
{
	return (uint64_t)part << TENSOR_CHUNK_BITS | chunk;
}
void tensor_free(struct tensor *t);

/* Stored blocks: those of the mosaic where there is one, else the chunk grid.
 * tensor_divides: axis i is part of a block's name. */
uint64_t tensor_blocks(const struct tensor *t);
bool tensor_divides(const struct tensor *t, unsigned axis);
void tensor_block_box(const struct tensor *t, uint64_t block, struct box *out);
/* The block with exactly this box; -ENOENT. */
int tensor_block_find(const struct tensor *t, const struct box *b,
		      uint64_t *block);
/* The flags of rows [first, last) as one value: what they all are, "mixed", or
 * "" without flags.  Blocks. */
int tensor_rows_flag(struct tensor *t, uint64_t first, uint64_t last,
		     struct pinner *p, char *buf, size_t n, struct error *err);
/* The same for the rows of a block. */
int tensor_block_flag(struct tensor *t, uint64_t block, struct pinner *p,
		      char *buf, size_t n, struct error *err);

/* Operations of `set`, for whoever makes a tensor. */
extern const struct chunk_set_ops tensor_chunk_ops;

#endif
