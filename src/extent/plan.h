/* SPDX-License-Identifier: BSD-2-Clause */
/* Which bytes make up a window of a file: a short list of extents. */
#ifndef EXTENT_PLAN_H
#define EXTENT_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "extent/chunk.h"

enum extent_kind { EXTENT_FILE, EXTENT_CHUNK, EXTENT_MEM, EXTENT_FILL };
#define EXTENT_WHOLE UINT32_MAX
struct extent {
	enum extent_kind kind;
	uint64_t len; /* bytes, > 0 */
	union {
		struct {
			uint32_t file;
			uint64_t pos;
		} file; /* verbatim bytes of a backing file */
		struct {
			struct chunk_set *set;
			uint64_t index;
			uint64_t
				skip; /* bytes of the chunk (or slice) before */
			uint32_t slice; /* EXTENT_WHOLE, or a slice number */
			/* The READ has no other run in this chunk; false: not known. */
			bool alone;
			/* A strip of a band, see plan_band; rows 0: none. */
			uint32_t rows;
			uint64_t step;  /* bytes from row to row in the chunk */
			uint64_t pitch; /* the same in the window */
		} chunk;
		struct {
			const void *
				data; /* owned by the plan (scratch) or the tree */
		} mem;
		struct {
			struct fill of;
			uint32_t phase; /* first byte's offset in the pattern */
		} fill;
	} u;
};

/* `map` appends extents until the window is full or PLAN_MAX is reached;
 * whoever asked goes on with a second plan from off + have. */
#define PLAN_MAX 512
#define PLAN_SCRATCH 8192
/* Runs from this length on are worth an extent, and no copy, of their own. */
#define PLAN_RUN 2048
struct plan {
	uint64_t want, have; /* bytes asked for, bytes mapped so far */
	unsigned n;
	unsigned scratch_used;
	bool full;   /* something found no room: nothing may follow it */
	bool bands;  /* whoever reads this plan understands them */
	bool banded; /* there are some */
	struct extent ext[PLAN_MAX];
	unsigned char scratch[PLAN_SCRATCH]; /* small headers */
};

void plan_init(struct plan *p, uint64_t want);
/* Room for more?  False when the window is mapped or the list is full. */
static inline bool plan_open(const struct plan *p)
{
	return p->have < p->want && p->n < PLAN_MAX && !p->full;
}
/* Each appends at most what the window still wants, merges with the extent
 * before where the bytes continue, and returns the bytes taken (0: full).  Once
 * less than the window wants was taken for lack of room, the plan stays full. */
uint64_t plan_file(struct plan *p, uint32_t file, uint64_t pos, uint64_t len);
/* No file is that long.  Bytes that the file should have had, and that lie behind its
 * end, are mapped to PLAN_PAST plus their position in the file; those that lie behind the
 * end of something in the file, to PLAN_PAST itself.  Pinning them is -EIO, with a
 * sentence that says so. */
#define PLAN_PAST ((uint64_t)1 << 62)
/* Say that file `path`, of `size` bytes, does not have those at `pos`.  -EIO. */
int plan_say_past(const char *path, uint64_t size, uint64_t pos, uint64_t len,
		  struct error *err);
uint64_t plan_chunk(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint64_t skip, uint64_t len);
uint64_t plan_slice(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint32_t slice, uint64_t skip, uint64_t len);
uint64_t plan_fill(struct plan *p, struct fill fill, uint64_t phase,
		   uint64_t len);
/*
 * Where a box cuts across narrow chunks, the window is many short runs: row
 * after row, the same chunks side by side.  A band is `rows` such rows at once,
 * an extent for each chunk in it, and none for each run:
 *
 *	window  aaaabbbbccccaaaabbbbccccaaaabbbbcccc   3 rows, 3 strips
 *	        |- pitch --|                            of len 4
 *
 * Row r of a strip is at skip + r * step of its chunk.  The strips of a band
 * follow each other, their lengths add up to its pitch.  All of them are
 * appended, or none, and the plan is full then (0).  The window has room for
 * the rows; n <= PLAN_MAX, rows > 1.
 */
struct strip {
	uint64_t index, skip, len;
};
uint64_t plan_band(struct plan *p, struct chunk_set *set,
		   const struct strip *strips, unsigned n, uint32_t rows,
		   uint64_t step);
/* Bytes of the window that an extent stands for. */
static inline uint64_t extent_bytes(const struct extent *x)
{
	return x->kind == EXTENT_CHUNK && x->u.chunk.rows
		       ? x->len * x->u.chunk.rows
		       : x->len;
}
/* Return true if both extents are of one chunk. */
static inline bool extent_same_chunk(const struct extent *a,
				     const struct extent *b)
{
	return a->kind == EXTENT_CHUNK && b->kind == EXTENT_CHUNK &&
	       a->u.chunk.set == b->u.chunk.set &&
	       a->u.chunk.index == b->u.chunk.index;
}
/* Copies `data` into the plan (bounded by PLAN_SCRATCH). */
uint64_t plan_copy(struct plan *p, const void *data, uint64_t len);
/* `data` is not copied: it belongs to the tree, or lives as long. */
uint64_t plan_mem(struct plan *p, const void *data, uint64_t len);
struct handles;
/* One line an extent, for people and tests.  `h` has the names of files; NULL:
 * their numbers have to do. */
void plan_print(const struct plan *p, const struct handles *h, FILE *out);
/* Print the extents as items of a JSON array: offset (the first extent is at byte `at` of
 * the file), length, and where the bytes are.  `first` leaves out the leading comma. */
void plan_print_json(const struct plan *p, const struct handles *h, uint64_t at,
		     bool first, FILE *out);

#endif
