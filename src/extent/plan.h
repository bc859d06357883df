/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan: the short list of extents that make up a window of a file. */
#ifndef EXTENT_PLAN_H
#define EXTENT_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "extent/chunk.h"

enum extent_kind { EXTENT_FILE, EXTENT_CHUNK, EXTENT_MEM, EXTENT_FILL };
#define EXTENT_WHOLE UINT32_MAX
struct extent {
	enum extent_kind kind;
	uint64_t len; /* in bytes, > 0; of one row, if there are rows */
	union {
		struct {
			uint32_t file;
			uint64_t pos;
		} file; /* bytes of a backing file as they are */
		struct {
			struct chunk_set *set;
			uint64_t index;
			/* Bytes of the chunk (or slice) before the extent. */
			uint64_t skip;
			uint32_t slice; /* EXTENT_WHOLE, or a slice number */
			/* True if the READ has no other extent in this chunk; false if
			 * that is not known. */
			bool alone;
			/* A strip of several rows, see plan_strips; 0: not a strip. */
			uint32_t rows;
			/* Bytes from one row to the next in the chunk. */
			uint64_t step;
			/* Bytes from one row to the next in the window. */
			uint64_t pitch;
		} chunk;
		struct {
			/* Owned by the plan (scratch) or by the tree. */
			const void *data;
		} mem;
		struct {
			struct fill of;
			/* Offset of the first byte in the pattern. */
			uint32_t phase;
		} fill;
	} u;
};

/* A plan.  `map` appends extents until the window is full or the plan has PLAN_MAX of
 * them; in that case the caller makes a second plan that begins at off + have. */
#define PLAN_MAX 512
#define PLAN_SCRATCH 8192
/* Runs of at least this many bytes get an extent of their own instead of being copied. */
#define PLAN_RUN 2048
struct plan {
	uint64_t want, have; /* bytes asked for, bytes mapped so far */
	unsigned n;
	unsigned scratch_used;
	/* Something did not fit: nothing may be appended any more. */
	bool full;
	/* The caller that reads this plan understands strips of rows. */
	bool takes_strips;
	bool has_strips; /* the plan has some */
	struct extent ext[PLAN_MAX];
	unsigned char scratch[PLAN_SCRATCH]; /* small headers */
};

void plan_init(struct plan *p, uint64_t want);
/* Return true if there is room for more: the window is not mapped yet and the list is
 * not full. */
static inline bool plan_open(const struct plan *p)
{
	return p->have < p->want && p->n < PLAN_MAX && !p->full;
}
/* Each plan_* function below appends at most what the window still wants, merges it
 * with the extent before if the bytes continue that, and returns the number of bytes
 * taken (0: full).  Once fewer bytes than the window wants were taken for lack of room,
 * the plan stays full. */
uint64_t plan_file(struct plan *p, uint32_t file, uint64_t pos, uint64_t len);
/* No file is this long.  Bytes that a file should have, but that lie behind its end,
 * are mapped to PLAN_PAST plus their position in the file; bytes that lie behind the
 * end of something within the file are mapped to PLAN_PAST itself.  Pinning them is
 * -EIO, with a sentence that says so. */
#define PLAN_PAST ((uint64_t)1 << 62)
/* Set the error that file `path`, of `size` bytes, does not have the `len` bytes at
 * `pos`, which may include PLAN_PAST.  Returns -EIO. */
int plan_say_past(const char *path, uint64_t size, uint64_t pos, uint64_t len,
		  struct error *err);
uint64_t plan_chunk(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint64_t skip, uint64_t len);
uint64_t plan_slice(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint32_t slice, uint64_t skip, uint64_t len);
uint64_t plan_fill(struct plan *p, struct fill fill, uint64_t phase,
		   uint64_t len);
/*
 * Where a box cuts across narrow chunks, the window is many short runs: row after row,
 * the same chunks side by side.  A band maps `rows` such rows at once.  It has one
 * extent for each chunk (a strip), instead of one for each run:
 *
 *	window  aaaabbbbccccaaaabbbbccccaaaabbbbcccc   3 rows, 3 strips
 *	        |- pitch --|                            of len 4
 *
 * Row r of a strip is at skip + r * step of its chunk.  The strips of a band follow
 * each other, and their lengths add up to its pitch.  Either all strips are appended,
 * or none; then the plan is full and 0 is returned.  The caller sees to it that the
 * window has room for the rows, that n <= PLAN_MAX and that rows > 1.
 */
struct strip {
	uint64_t index, skip, len;
};
uint64_t plan_strips(struct plan *p, struct chunk_set *set,
		     const struct strip *strips, unsigned n, uint32_t rows,
		     uint64_t step);
/* Return the number of bytes of the window that an extent stands for. */
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
/* Append a copy of `data`, which the plan owns; all copies together have at most
 * PLAN_SCRATCH bytes. */
uint64_t plan_copy(struct plan *p, const void *data, uint64_t len);
/* Append `data`, which is not copied and must live as long as the tree. */
uint64_t plan_mem(struct plan *p, const void *data, uint64_t len);
struct handles;
/* Print one line for each extent, for people and tests.  `h` has the names of files; if
 * it is NULL their numbers are printed. */
void plan_print(const struct plan *p, const struct handles *h, FILE *out);
/* Print the extents as items of a JSON array: offset (the first extent is at byte `at` of
 * the file), length, and where the bytes are.  `first` leaves out the leading comma. */
void plan_print_json(const struct plan *p, const struct handles *h, uint64_t at,
		     bool first, FILE *out);

#endif
