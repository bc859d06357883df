/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor: parts along the first axis, each a dataset stored in its own way. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "extent/chunk.h"
#include "extent/pinner.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

enum layout_kind {
	LAYOUT_CHUNKED, /* grid of chunks, found through segments */
	LAYOUT_LINEAR,  /* contiguous in the file from `pos` on */
	LAYOUT_FETCHED, /* small, made by the source (compact) */
	LAYOUT_ABSENT   /* never written: all fill value */
};
/* How the dataset behind one part is stored; immutable once published. */
struct layout {
	enum layout_kind kind;
	uint32_t file;
	uint32_t swap;   /* width of numbers to reverse, 0: none */
	bool by_library; /* CHUNKED: ops->fetch makes chunks, none is located */
	bool raw_edges;  /* partial edge chunks were stored unfiltered */
	uint64_t pos;    /* LINEAR: first byte in the file */
	/* Shared by parts that are alike, owned by the source: */
	const struct grid *grid; /* of the stored dataset; LINEAR: one chunk */
	const struct pipeline *pipeline;
	const uint64_t *origin; /* where the part's box begins; NULL: at 0 */
	struct fill fill;
	unsigned char fill_bytes[32];
};

enum part_state { PART_UNKNOWN, PART_PRESENT, PART_MISSING, PART_BAD };
/* Rows [begin, end) of the first axis and the dataset they come from. */
struct part {
	uint64_t begin, end;
	uint32_t file;
	const char *dataset; /* its path in that file; the source's */
	/* Where the rows begin in that dataset; NULL: they are all of it. */
	const uint64_t *origin;
	_Atomic(const struct layout *) layout; /* NULL: not opened yet */
	_Atomic uint64_t written; /* chunks its index counts, plus 1; 0: ? */
};

struct tensor;
/* Where one chunk is stored. */
struct location {
	uint64_t pos; /* UINT64_MAX: never written */
	uint64_t stored;
	uint64_t mask;
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
	/* All bytes of one chunk (LAYOUT_FETCHED: of the only one) in the
	 * file's byte order; what overhangs the edge is zero. */
	int (*fetch)(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t chunk, void *out, size_t size, struct error *err);
	/* Strings of elements [first, first + n) of part p in C order; calls
	 * `put` once for each. */
	int (*strings)(struct tensor *t, uint32_t p, uint64_t first, uint64_t n,
		       void (*put)(void *ctx, const char *s, size_t len),
		       void *ctx, struct error *err);
	/* Attributes as a JSON object (malloc'ed text). */
	char *(*attributes)(struct tensor *t, struct error *err);
	void (*free)(struct tensor *t);
};
enum tensor_missing { MISSING_ERROR, MISSING_FILL };

struct text;
struct tensor {
	struct chunk_set set; /* first member: all chunks of all parts */
	const struct tensor_ops *ops;
	struct handles *handles;
	struct dtype dtype;  /* as served */
	struct dtype stored; /* as in the file */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t elements, bytes; /* bytes of array.bin; 0 for strings */
	int64_t mtime;
	enum tensor_missing missing;
	bool distributed; /* parts in other files (a virtual dataset) */
	uint32_t nparts;
	struct part *parts; /* sorted by begin, disjoint; gaps are fill */
	struct fill fill;   /* of rows that no part covers */
	unsigned char fill_bytes[32];
	struct tensor *flags;  /* strings, one a row; borrowed; or NULL */
	struct chunk_set info; /* info.json, made when read */
	uint64_t text_bytes;   /* mean bytes of a string, at most; 0: unknown */
	char *unreadable;      /* chunks need a filter that we lack: which */
	struct text *text;     /* DTYPE_STRING: its values as lines */
	char *why_not;         /* not NULL: listed, not shown, and why */
	char *note;            /* what was left out, and why; or NULL */
	char *name;            /* "/data", for sentences */
	char *source;          /* path of the main file */
};

/* Part that holds row `row`, or -1 with *end = the row where the gap ends. */
int64_t tensor_part_at(const struct tensor *t, uint64_t row, uint64_t *end);
/* Chunks of a learnt part (pieces where contiguous data is swapped). */
uint64_t layout_chunks(const struct layout *l);
/* The layout of part p, learnt if need be.  May block. */
int tensor_learn(struct tensor *t, uint32_t p, const struct layout **out,
		 struct error *err);
/* Learn every part that a box touches, as `files.prepare` wants. */
int tensor_prepare_box(struct tensor *t, const struct box *b, uint64_t off,
		       uint64_t len, struct error *err);
/* Append the extents of the box's bytes from `off` on (see files.map). */
int tensor_map_box(const struct tensor *t, const struct box *b, uint64_t off,
		   struct plan *plan, struct error *err);
/*
 * Chunk numbers of the set: part << 40 | chunk of the part's grid.  Contiguous
 * data that needs byte-swapping is cut into pieces of TENSOR_PIECE bytes, which
 * count as its chunks.
 */
#define TENSOR_CHUNK_BITS 40
#define TENSOR_CHUNK_MAX (UINT64_C(1) << TENSOR_CHUNK_BITS)
#define TENSOR_PARTS_MAX (UINT32_C(1) << 24)
#define TENSOR_PIECE (UINT64_C(1) << 20)
static inline uint64_t tensor_chunk_id(uint32_t part, uint64_t chunk)
{
	return (uint64_t)part << TENSOR_CHUNK_BITS | chunk;
}
void tensor_free(struct tensor *t);

/* Stored blocks: parts where there are several files, else the chunk grid. */
uint64_t tensor_blocks(const struct tensor *t, uint64_t counts[RANK_MAX]);
void tensor_block_box(const struct tensor *t, uint64_t block, struct box *out);
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
