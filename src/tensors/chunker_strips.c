/* SPDX-License-Identifier: BSD-2-Clause */
/* Which elements of a stream form which chunks. */
#include "tensors/chunker_strips.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/copies.h"
#include "base/number.h"

uint64_t strip_slices(const struct strips *b, uint64_t strip)
{
	uint64_t from = strip % b->per_length * b->chunk[b->axis];

	return min_u64(b->chunk[b->axis], b->length - from);
}

uint64_t strip_start(const struct strips *b, uint64_t strip)
{
	uint64_t whole = strip / b->per_length, part = strip % b->per_length;

	return ((whole ? whole * b->length : 0) + part * b->chunk[b->axis]) *
	       b->inner;
}

void strip_cut(const struct strips *b, const void *strip, uint64_t slices,
	       uint64_t i, void *out)
{
	struct copy_axis box[RANK_MAX];
	uint64_t step_in = b->elem, step_out = b->elem, from = 0;
	bool whole = true;

	for (unsigned a = b->rank; a-- > b->axis;) {
		uint64_t n = a == b->axis ? slices : b->shape[a], at = 0;

		if (a > b->axis) {
			uint64_t chunks = div_up(n, b->chunk[a]);

			at = i % chunks * b->chunk[a];
			i /= chunks;
		}
		box[a].n = min_u64(b->chunk[a], n - at);
		whole = whole && box[a].n == b->chunk[a];
		box[a].in = step_in;
		box[a].out = step_out;
		from += at * step_in;
		step_in *= n;
		step_out *= b->chunk[a];
	}
	if (!whole)
		memset(out, 0, b->chunk_bytes);
	copy_box(out, (const unsigned char *)strip + from, box + b->axis,
		 b->rank - b->axis, b->elem);
}

int strips_init(struct strips *b, unsigned rank, uint32_t elem,
		const uint64_t *shape, const uint64_t *chunk, struct error *err)
{
	uint64_t strip;

	*b = (struct strips){.rank = rank, .elem = elem, .flat = rank - 1};
	memcpy(b->shape, shape, rank * sizeof *shape);
	memcpy(b->chunk, chunk, rank * sizeof *chunk);
	while (b->axis < rank - 1 && chunk[b->axis] == 1)
		b->axis++;
	while (b->flat > b->axis && chunk[b->flat] == shape[b->flat])
		b->flat--;
	b->inner = b->chunk_bytes = elem;
	b->per_strip = 1;
	for (unsigned i = 0; i < rank; i++) {
		if (mul_overflows(b->chunk_bytes, chunk[i], &b->chunk_bytes) ||
		    (i > b->axis &&
		     mul_overflows(b->inner, shape[i], &b->inner)))
			return error_set(
				err, -EINVAL,
				"chunks would have more than 2^64 bytes");
		if (i > b->axis)
			b->per_strip *= div_up(shape[i], chunk[i]);
	}
	if (mul_overflows(b->inner, chunk[b->axis], &strip))
		return error_set(
			err, -EINVAL,
			"a row of chunks would have more than 2^64 bytes");
	b->length = b->axis ? shape[b->axis] : INT64_MAX;
	b->per_length = div_up(b->length, chunk[b->axis]);
	return 0;
}
