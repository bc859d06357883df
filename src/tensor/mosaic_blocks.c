/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a mosaic: the distinct boxes that tiles cover, sorted. */
#include <errno.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "tensor/mosaic_private.h"

static void tile_box(const struct mosaic *m, uint32_t tile, struct box *out)
{
	struct axis to[RANK_MAX];

	tile_to(m, tile, to);
	for (unsigned i = 0; i < m->rank; i++) {
		out->start[i] = to[i].start;
		out->count[i] = to[i].block;
	}
}

/* Compare axis by axis, by start, then by count.  This is the order of the blocks' file
 * names. */
static int box_compare(const struct box *a, const struct box *b, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++) {
		if (a->start[i] != b->start[i])
			return a->start[i] < b->start[i] ? -1 : 1;
		if (a->count[i] != b->count[i])
			return a->count[i] < b->count[i] ? -1 : 1;
	}
	return 0;
}

static int block_compare(const void *x, const void *y, void *mosaic)
{
	const struct mosaic *m = mosaic;
	struct box a, b;

	tile_box(m, *(const uint32_t *)x, &a);
	tile_box(m, *(const uint32_t *)y, &b);
	return box_compare(&a, &b, m->rank);
}

int mosaic_blocks_make(struct mosaic *m, struct error *err)
{
	uint32_t n = (uint32_t)m->tiles.n, k = 0;
	bool sorted = true;
	struct box b;

	if (m->strided || !n)
		return 0;
	m->blocks = malloc(n * sizeof *m->blocks);
	if (!m->blocks)
		return error_no_memory(err, "the list of stored blocks");
	for (uint32_t i = 0; i < n; i++) {
		m->blocks[i] = i;
		sorted = sorted && (!i || block_compare(&m->blocks[i - 1],
							&m->blocks[i], m) <= 0);
	}
	if (!sorted)
		qsort_r(m->blocks, n, sizeof *m->blocks, block_compare, m);
	for (uint32_t i = 0; i < n; i++)
		if (!k || block_compare(&m->blocks[k - 1], &m->blocks[i], m))
			m->blocks[k++] = m->blocks[i];
	m->nblocks = k;
	for (uint32_t i = 0; i < k; i++) {
		tile_box(m, m->blocks[i], &b);
		for (unsigned a = 0; a < m->rank; a++)
			if (b.count[a] < m->shape[a])
				m->divided |= UINT32_C(1) << a;
	}
	return 0;
}

uint32_t mosaic_blocks(const struct mosaic *m)
{
	return m->nblocks;
}

void mosaic_block(const struct mosaic *m, uint32_t k, struct box *out)
{
	tile_box(m, m->blocks[k], out);
}

int mosaic_block_find(const struct mosaic *m, const struct box *b, uint32_t *k)
{
	struct bisect s = bisect_in(0, m->nblocks);
	struct box have;

	while (bisect_next(&s)) {
		mosaic_block(m, (uint32_t)s.mid, &have);
		bisect_answer(&s, box_compare(&have, b, m->rank) >= 0);
	}
	if (s.lo == m->nblocks)
		return -ENOENT;
	*k = (uint32_t)s.lo;
	mosaic_block(m, *k, &have);
	return box_compare(&have, b, m->rank) ? -ENOENT : 0;
}

bool mosaic_divides(const struct mosaic *m, unsigned axis)
{
	return m->divided >> axis & 1;
}
