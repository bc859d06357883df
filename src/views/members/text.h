/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of lines for views, made when they are read, a block at a time. */
#ifndef VIEWS_MEMBERS_TEXT_H
#define VIEWS_MEMBERS_TEXT_H

#include "extent/chunk.h"
#include "extent/pinner.h"
#include "views/members/member_views.h"

/*
 * The texts of a view have numbers.  Only what is read of a text is made, and kept by
 * the cache.  A text in blocks has its lines made MEMBER_VIEW_TEXT_LINES at a time; where
 * each block begins is found by making all of them once, and takes 8 bytes a block.  A
 * whole text is one block.
 */
#define MEMBER_VIEW_TEXT_LINES 4096u

struct member_view_text;
struct member_view_text_ops {
	uint64_t (*count)(const struct member_view_text *t, uint32_t text);
	/* Write line i with its newline; `path` is memory for a path.  Returns 0, or
	 * -errno with a sentence. */
	int (*line)(const struct member_view_text *t, uint32_t text, uint64_t i,
		    struct member_view_path *path, FILE *out,
		    struct error *err);
	/* Write the name of a text, for messages. */
	void (*describe)(const struct member_view_text *t, uint32_t text,
			 char *buf, size_t n);
};
struct member_view_text {
	struct chunk_set set; /* first member */
	const struct member_view_text_ops *ops;
};
void member_view_text_init(struct member_view_text *t,
			   const struct member_view_text_ops *ops);

/* The size of a whole text in bytes, and its mapping from byte `off` on. */
int member_view_text_size(struct member_view_text *t, uint32_t text,
			  struct pinner *p, uint64_t *size, struct error *err);
void member_view_text_map(const struct member_view_text *t, uint32_t text,
			  uint64_t off, struct plan *p);

/* Where the n blocks of a text begin, in bytes; begin[n] is its size. */
struct member_view_blocks {
	uint64_t n;
	uint64_t begin[];
};
/* Make all blocks once and return where they begin, for the caller to free; NULL with a
 * sentence if that failed.  Blocks. */
struct member_view_blocks *
member_view_blocks_new(const struct member_view_text *t, uint32_t text,
		       struct error *err);
static inline uint64_t
member_view_blocks_size(const struct member_view_blocks *b)
{
	return b->begin[b->n];
}
void member_view_blocks_map(const struct member_view_text *t, uint32_t text,
			    const struct member_view_blocks *b, uint64_t off,
			    struct plan *p);

#endif
