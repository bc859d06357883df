/* SPDX-License-Identifier: BSD-2-Clause */
/* Shape and chunk arithmetic: which chunk holds a byte, where in it, and how many bytes
 * follow. */
#include "tensor/grid.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

int grid_init(struct grid *g, unsigned rank, const uint64_t *shape,
	      const uint64_t *chunk, uint32_t elem)
{
	uint64_t elements = elem, bytes = elem;

	memset(g, 0, sizeof *g);
	if (rank > RANK_MAX || !elem)
		return -EOVERFLOW;
	g->rank = rank;
	g->elem = elem;
	g->count = 1;
	for (unsigned i = 0; i < rank; i++) {
		if (!chunk[i] || mul_overflows(bytes, chunk[i], &bytes) ||
		    mul_overflows(elements, max_u64(shape[i], 1), &elements))
			return -EOVERFLOW;
		g->shape[i] = shape[i];
		g->chunk[i] = chunk[i];
		g->chunks[i] = div_up(shape[i], chunk[i]);
		if (mul_overflows(g->count, g->chunks[i], &g->count))
			return -EOVERFLOW;
	}
	if (elements > INT64_MAX || bytes > INT64_MAX)
		return -EOVERFLOW;
	g->chunk_bytes = bytes;
	return 0;
}

uint64_t box_elements(const struct box *b, unsigned rank)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < rank; i++)
		n *= b->count[i];
	return n;
}

/*
 * Walk from the last axis outwards.  For each axis: where is the element in the box, in
 * which chunk and where in that chunk, and for how long do box and chunk run on
 * together?  An axis where the box starts with a chunk and is exactly as long as one
 * lets the run continue into the axis before it.
 */
void grid_run(const struct grid *g, const struct box *b, uint64_t off,
	      uint64_t *chunk, uint64_t *in_chunk, uint64_t *run)
{
	uint64_t e = off / g->elem, sub = off % g->elem;
	uint64_t index = 0, inside = 0, cell = 1, stride = 1;
	uint64_t length = 1, inner = 1;
	bool joined = true;

	for (unsigned i = g->rank; i-- > 0;) {
		uint64_t c = e % b->count[i], at = b->start[i] + c;
		uint64_t k = at / g->chunk[i], r = at % g->chunk[i];
		uint64_t left = min_u64(b->count[i] - c, g->chunk[i] - r);

		e /= b->count[i];
		index += k * cell;
		cell *= g->chunks[i];
		inside += r * stride;
		stride *= g->chunk[i];
		if (!joined)
			continue;
		length += (left - 1) * inner;
		inner *= b->count[i];
		joined = b->count[i] == g->chunk[i] && c == r;
	}
	*chunk = index;
	*in_chunk = inside * g->elem + sub;
	*run = length * g->elem - sub;
}

/*
 * Walk the axes as grid_run does, with the same `joined`.  Once a run ends within an
 * axis, the rows lie along the next axis outwards of which the box has more than one
 * element.
 */
bool grid_find_rows(const struct grid *g, const struct box *b, uint64_t off,
		    struct grid_rows *out)
{
	uint64_t e = off / g->elem, stride = g->elem;
	bool joined = true;

	if (off % g->elem)
		return false;
	out->pitch = g->elem;
	for (unsigned i = g->rank; i-- > 0;) {
		uint64_t c = e % b->count[i], at = b->start[i] + c;
		uint64_t r = at % g->chunk[i];

		e /= b->count[i];
		if (!joined && b->count[i] > 1) {
			out->rows = min_u64(b->count[i] - c, g->chunk[i] - r);
			out->step = stride;
			return true;
		}
		if (c)
			return false;
		out->pitch *= b->count[i];
		stride *= g->chunk[i];
		joined = joined && b->count[i] == g->chunk[i] && r == 0;
	}
	return false;
}

unsigned grid_carry(const struct grid *g, uint64_t index)
{
	unsigned ended = 0;

	for (unsigned i = g->rank; i-- > 0;) {
		uint64_t n = g->chunks[i];

		if (n <= 1)
			continue;
		if (index % n != n - 1)
			break;
		index /= n;
		ended++;
	}
	return ended;
}

void grid_origin(const struct grid *g, uint64_t index, uint64_t *origin)
{
	for (unsigned i = g->rank; i-- > 0;) {
		origin[i] = index % g->chunks[i] * g->chunk[i];
		index /= g->chunks[i];
	}
}

bool grid_is_partial(const struct grid *g, uint64_t index)
{
	uint64_t origin[RANK_MAX];

	grid_origin(g, index, origin);
	for (unsigned i = 0; i < g->rank; i++)
		if (g->shape[i] - origin[i] < g->chunk[i])
			return true;
	return false;
}

uint64_t grid_chunk_useful(const struct grid *g, uint64_t index)
{
	uint64_t origin[RANK_MAX], n = g->elem;

	grid_origin(g, index, origin);
	for (unsigned i = 0; i < g->rank; i++)
		n *= min_u64(g->chunk[i], g->shape[i] - origin[i]);
	return n;
}

uint64_t grid_touched(const struct grid *g, const struct box *b)
{
	uint64_t n = 1, last;

	for (unsigned i = 0; i < g->rank; i++) {
		if (!b->count[i])
			return 0;
		last = (b->start[i] + b->count[i] - 1) / g->chunk[i];
		n *= last - b->start[i] / g->chunk[i] + 1;
	}
	return n;
}

bool grid_step(unsigned rank, uint64_t *at, const uint64_t *n)
{
	for (unsigned i = rank; i-- > 0;) {
		if (++at[i] < n[i])
			return true;
		at[i] = 0;
	}
	return false;
}

uint64_t box_front(const struct box *b, unsigned rank, uint64_t skip,
		   uint64_t n, struct box *out)
{
	uint64_t size = 1;
	bool whole = true; /* all axes further in are taken whole */

	memset(out, 0, sizeof *out);
	for (unsigned i = rank; i-- > 0;) {
		uint64_t at = skip % b->count[i];

		out->start[i] = b->start[i] + at;
		out->count[i] = 1;
		if (whole) {
			out->count[i] = min_u64(b->count[i] - at, n / size);
			size *= out->count[i];
			whole = out->count[i] == b->count[i];
		}
		skip /= b->count[i];
	}
	return size;
}
