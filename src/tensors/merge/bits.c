/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of a box. */
#include "tensors/merge/bits.h"

#include "base/number.h"

void chunk_range_init(struct chunk_range *r, const struct grid *g,
		      const struct box *b, bool begin)
{
	r->count = 1;
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t end = div_up(b->start[i] + b->count[i], g->chunk[i]);

		r->first[i] = begin ? div_up(b->start[i], g->chunk[i])
				    : b->start[i] / g->chunk[i];
		r->n[i] = b->count[i] && end > r->first[i] ? end - r->first[i]
							   : 0;
		r->count *= r->n[i];
	}
}

uint64_t chunk_range_at(const struct chunk_range *r, const struct grid *g,
			uint64_t i)
{
	uint64_t number = 0, step = 1;

	for (unsigned k = g->rank; k-- > 0;) {
		number += (r->first[k] + i % r->n[k]) * step;
		i /= r->n[k];
		step *= g->chunks[k];
	}
	return number;
}

bool merge_part_is_safe(const struct stream *s, uint32_t p)
{
	struct chunk_range r;
	struct box b;

	if (!s->safe || !s->boxes)
		return false;
	for (uint32_t i = s->first[p]; i < s->first[p + 1]; i++) {
		if (!merge_tile_box(s->t, s->tile[i], &b))
			return false;
		chunk_range_init(&r, &s->grid, &b, false);
		for (uint64_t k = 0; k < r.count; k++)
			if (!bits_get(s->safe, chunk_range_at(&r, &s->grid, k)))
				return false;
	}
	return true;
}
