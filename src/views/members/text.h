/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of lines for views, made when they are read, a block at a time. */
#ifndef VIEWS_MEMBERS_TEXT_H
#define VIEWS_MEMBERS_TEXT_H

#include "extent/chunk.h"
#include "extent/pinner.h"
#include "views/members/beside.h"

/*
 * The texts of a view have numbers.  Only what is read of a text is made, and kept by
 * the cache.  A text in blocks has its lines made BESIDE_TEXT_LINES at a time; where
 * each block begins is found by making all of them once, and takes 8 bytes a block.  A
 * whole text is one block.
 */
#define BESIDE_TEXT_LINES 4096u

struct beside_text;
struct beside_text_ops {
	uint64_t (*count)(const struct beside_text *t, uint32_t text);
	/* Write line i with its newline; `path` is memory for a path.  Returns 0, or
	 * -errno with a sentence. */
	int (*line)(const struct beside_text *t, uint32_t text, uint64_t i,
		    struct beside_path *path, FILE *out, struct error *err);
	/* Write the name of a text, for messages. */
	void (*describe)(const struct beside_text *t, uint32_t text, char *buf,
			 size_t n);
};
struct beside_text {
	struct chunk_set set; /* first member */
	const struct beside_text_ops *ops;
};
void beside_text_init(struct beside_text *t, const struct beside_text_ops *ops);

/* The size of a whole text in bytes, and its mapping from byte `off` on. */
int beside_text_size(struct beside_text *t, uint32_t text, struct pinner *p,
		     uint64_t *size, struct error *err);
void beside_text_map(const struct beside_text *t, uint32_t text, uint64_t off,
		     struct plan *p);

/* Where the n blocks of a text begin, in bytes; begin[n] is its size. */
struct beside_blocks {
	uint64_t n;
	uint64_t begin[];
};
/* Make all blocks once and return where they begin, for the caller to free; NULL with a
 * sentence if that failed.  Blocks. */
struct beside_blocks *beside_blocks_new(const struct beside_text *t,
					uint32_t text, struct error *err);
static inline uint64_t beside_blocks_size(const struct beside_blocks *b)
{
	return b->begin[b->n];
}
void beside_blocks_map(const struct beside_text *t, uint32_t text,
		       const struct beside_blocks *b, uint64_t off,
		       struct plan *p);

#endif
