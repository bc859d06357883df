/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of lines, made when they are read. */

/*
 * A chunk is a block: its number is text << 32 | block, or WHOLE as the block for all
 * of a text.  Chunks are never empty, so each has one byte more than its text.
 */
#include "views/members/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"

#define WHOLE UINT32_MAX

static const struct member_view_text *text_of(const struct chunk_set *s)
{
	return (const struct member_view_text *)s;
}

static uint64_t text_chunk_index(uint32_t text, uint64_t block)
{
	return (uint64_t)text << 32 | block;
}

/* ---- blocks -------------------------------------------------------------- */

/* Make the lines of a block; *out is a text of *len bytes that the caller frees. */
static int block_make(const struct member_view_text *t, uint32_t text,
		      uint64_t block, char **out, size_t *len,
		      struct error *err)
{
	uint64_t n = t->ops->count(t, text), from = 0, to = n;
	struct member_view_path path = {0};
	int r = 0;
	FILE *f;
	int bad;

	if (block != WHOLE) {
		from = min_u64(block * MEMBER_VIEW_TEXT_LINES, n);
		to = min_u64(from + MEMBER_VIEW_TEXT_LINES, n);
	}
	*out = NULL;
	f = open_memstream(out, len);
	if (!f)
		return error_no_memory(err, "lines of a list of files");
	for (uint64_t i = from; i < to && r == 0; i++)
		r = t->ops->line(t, text, i, &path, f, err);
	free(path.at);
	bad = ferror(f);
	bad |= fclose(f);
	if (bad && r == 0)
		r = error_no_memory(err, "lines of a list of files");
	if (r < 0) {
		free(*out);
		*out = NULL;
	}
	return r;
}

static int text_set_fetch(struct chunk_set *s, uint64_t index,
			  _Atomic uint64_t *gauge, struct buf **out,
			  struct error *err)
{
	cleanup_free char *text = NULL;
	size_t len;
	struct buf *b;
	int r = block_make(text_of(s), (uint32_t)(index >> 32),
			   index & UINT32_MAX, &text, &len, err);

	if (r < 0)
		return r;
	b = buf_new(len + 1, gauge);
	if (!b)
		return error_no_memory(err, "a list of files");
	memcpy(b->data, text, len);
	b->data[len] = 0;
	*out = b;
	return 0;
}

static void text_set_describe(const struct chunk_set *s, uint64_t index,
			      char *buf, size_t n)
{
	text_of(s)->ops->describe(text_of(s), (uint32_t)(index >> 32), buf, n);
}

static const struct chunk_set_ops text_ops = {
	.index_page_of = chunk_text_index_page_of,
	.locate = chunk_text_locate,
	.fetch = text_set_fetch,
	.describe = text_set_describe,
};

void member_view_text_init(struct member_view_text *t,
			   const struct member_view_text_ops *ops)
{
	t->set.ops = &text_ops;
	t->set.id = chunk_set_new_id();
	t->set.unit = 4096;
	t->ops = ops;
}

static struct chunk_set *text_set(const struct member_view_text *t)
{
	return (struct chunk_set *)(uintptr_t)&t->set;
}

/* ---- whole texts --------------------------------------------------------- */

int member_view_text_size(struct member_view_text *t, uint32_t text,
			  struct pinner *p, uint64_t *size, struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	int r;

	e.u.chunk.set = &t->set;
	e.u.chunk.index = text_chunk_index(text, WHOLE);
	e.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &e, &span, err);
	if (r < 0)
		return r;
	*size = span.buf->size - 1;
	p->unpin(p, &span);
	return 0;
}

void member_view_text_map(const struct member_view_text *t, uint32_t text,
			  uint64_t off, struct plan *p)
{
	plan_chunk(p, text_set(t), text_chunk_index(text, WHOLE), off,
		   p->want - p->have);
}

/* ---- texts in blocks ----------------------------------------------------- */

struct member_view_blocks *
member_view_blocks_new(const struct member_view_text *t, uint32_t text,
		       struct error *err)
{
	uint64_t n = div_up(t->ops->count(t, text), MEMBER_VIEW_TEXT_LINES);
	struct member_view_blocks *b =
		malloc(sizeof *b + (n + 1) * sizeof *b->begin);

	if (!b) {
		error_no_memory(err, "the sizes of a list of files");
		return NULL;
	}
	b->n = n;
	b->begin[0] = 0;
	for (uint64_t i = 0; i < n; i++) {
		char *lines;
		size_t len;

		if (block_make(t, text, i, &lines, &len, err) < 0) {
			free(b);
			return NULL;
		}
		free(lines);
		b->begin[i + 1] = b->begin[i] + len;
	}
	return b;
}

/* Return the block that has byte `off` of the text. */
static uint64_t text_block_at(const struct member_view_blocks *b, uint64_t off)
{
	struct bisect x = bisect_in(1, b->n);

	while (bisect_next(&x))
		bisect_answer(&x, b->begin[x.mid] > off);
	return x.lo - 1;
}

void member_view_blocks_map(const struct member_view_text *t, uint32_t text,
			    const struct member_view_blocks *b, uint64_t off,
			    struct plan *p)
{
	uint64_t i;

	if (off >= member_view_blocks_size(b))
		return;
	for (i = text_block_at(b, off); i < b->n && plan_open(p); i++) {
		uint64_t left = b->begin[i + 1] - off;

		if (plan_chunk(p, text_set(t), text_chunk_index(text, i),
			       off - b->begin[i], left) < left)
			return;
		off = b->begin[i + 1];
	}
}
