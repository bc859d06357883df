/* SPDX-License-Identifier: BSD-2-Clause */
/* Decode a very large chunk in parts, for formats that are made of blocks. */
/*
 * Chunks are decoded on as many threads as there are readers, and ahead of readers that
 * go forward.  A reader of a single large chunk (a detector's frame, at random) would
 * wait for one core while the others are idle.
 */
#include "codec/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/team.h"

/* Parts for each thread: threads are not equally fast. */
#define EACH 4

struct parts {
	part_fn *fn;
	void *ctx;
	size_t n;
	struct part *at;
};

size_t parts_blocks(size_t total, size_t block)
{
	size_t blocks = block ? total / block + (total % block != 0) : 1;
	size_t part = total / ((size_t)team_size() * EACH);

	if (total < PARTS_LEAST || blocks < 2 || team_size() < 2)
		return max_u64(blocks, 1);
	return max_u64(max_u64(part, PART_LEAST) / block, 1);
}

static int run_part_of_chunk(void *ctx, size_t i, struct error *err)
{
	const struct parts *p = ctx;

	return p->fn(p->ctx, &p->at[i], err);
}

/* Return the stored bytes of the next `blocks` blocks, or 0 if they are not all there. */
static size_t stored_size(const unsigned char *in, size_t in_len, size_t blocks)
{
	size_t at = 0;

	for (size_t i = 0; i < blocks; i++) {
		if (in_len - at < 4 || load_be32(in + at) > in_len - at - 4)
			return 0;
		at += 4 + (size_t)load_be32(in + at);
	}
	return at;
}

static void cut_into_parts(struct parts *p, const struct part *all,
			   size_t blocks, size_t size)
{
	struct part rest = *all;

	while (rest.to - rest.from > size) {
		size_t n = stored_size(rest.in, rest.in_len, blocks);

		if (!n)
			break;
		p->at[p->n] = rest;
		p->at[p->n].in_len = n;
		p->at[p->n++].to = rest.from + size;
		rest.in += n;
		rest.in_len -= n;
		rest.from += size;
	}
	p->at[p->n++] = rest;
}

int parts_of_blocks(const unsigned char *in, size_t in_len, size_t total,
		    size_t block, part_fn *fn, void *ctx, struct error *err)
{
	const struct part all = {in, in_len, 0, total};
	size_t blocks = parts_blocks(total, block), size;
	cleanup_free struct part *at = NULL;
	struct parts p = {.fn = fn, .ctx = ctx};

	if (mul_overflows(blocks, block, &size) || size >= total)
		return fn(ctx, &all, err);
	p.at = at = calloc(total / size + 1, sizeof *at);
	if (!at)
		return error_no_memory(err, "decoding a chunk in parts");
	cut_into_parts(&p, &all, blocks, size);
	return team_run(p.n, run_part_of_chunk, &p, err);
}
