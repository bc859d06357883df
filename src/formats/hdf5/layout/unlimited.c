/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings without end: as long as their sources, or as many as there are. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/layout/tensor.h"
#include "formats/hdf5/layout/virtual.h"
#include "formats/hdf5/worker/call.h"

/* Limit of files that one pattern names. */
#define PATTERN_MAX 1000000u

/* ---- slabs --------------------------------------------------------------- */

static uint64_t *slab_at(uint64_t *s, unsigned rank, int what, unsigned axis)
{
	return &s[(unsigned)what * rank + axis];
}

/* A slab without end has an unlimited count or block along that axis. */
int hdf5_slab_endless(const uint64_t *s, unsigned rank)
{
	for (unsigned i = 0; s && i < rank; i++)
		if (s[COUNT * rank + i] == HDF5_UNLIMITED ||
		    s[BLOCK * rank + i] == HDF5_UNLIMITED)
			return (int)i;
	return -1;
}

/* An endless block has no gaps. */
bool hdf5_slab_end(const uint64_t *s, unsigned rank, unsigned axis, uint64_t n,
		   uint64_t *end)
{
	uint64_t start = s[START * rank + axis];
	uint64_t stride = s[STRIDE * rank + axis];
	uint64_t block = s[BLOCK * rank + axis], blocks, at;

	if (!n || block == HDF5_UNLIMITED)
		return !add_overflows(start, n, end);
	if (!block)
		return false;
	blocks = (n - 1) / block;
	return !mul_overflows(blocks, stride, &at) &&
	       !add_overflows(at, start, &at) &&
	       !add_overflows(at, n - blocks * block, end);
}

/* Blocks that touch have no gaps either. */
uint64_t hdf5_slab_clip(const uint64_t *s, unsigned rank, unsigned axis,
			uint64_t length)
{
	uint64_t start = s[START * rank + axis];
	uint64_t stride = s[STRIDE * rank + axis];
	uint64_t block = s[BLOCK * rank + axis], n;

	if (length <= start)
		return 0;
	n = length - start;
	if (block == HDF5_UNLIMITED || stride <= block)
		return n;
	return n / stride * block + min_u64(n % stride, block);
}

/* ---- axes without end ---------------------------------------------------- */

/* Elements [from, from + n) of an endless slab, n a multiple of the block or
 * less than one: set its start, count and block along the axis. */
bool hdf5_slab_part(uint64_t *s, unsigned rank, unsigned axis, uint64_t from,
		    uint64_t n)
{
	uint64_t *start = slab_at(s, rank, START, axis);
	uint64_t *stride = slab_at(s, rank, STRIDE, axis);
	uint64_t *count = slab_at(s, rank, COUNT, axis);
	uint64_t *block = slab_at(s, rank, BLOCK, axis), at;

	if (*block == HDF5_UNLIMITED || *stride <= *block) {
		*block = n;
		*count = *stride = 1;
		*stride = max_u64(n, 1);
		return !add_overflows(*start, from, start);
	}
	if (mul_overflows(from / *block, *stride, &at) ||
	    add_overflows(at, from % *block, &at) ||
	    add_overflows(*start, at, start))
		return false;
	if (n < *block) {
		*count = 1;
		*block = n;
	} else {
		*count = n / *block;
	}
	return true;
}

static int tile_part(struct builder *b, const struct hdf5_mapping *m,
		     uint32_t part, unsigned u, unsigned v, uint64_t from,
		     uint64_t n)
{
	unsigned rank = b->d->own_rank;
	uint64_t to[4 * RANK_MAX], src[4 * RANK_MAX];

	memcpy(to, m->to, 4 * rank * sizeof *to);
	memcpy(src, m->from, 4 * m->from_rank * sizeof *src);
	if (!hdf5_slab_part(to, rank, u, from, n) ||
	    !hdf5_slab_part(src, m->from_rank, v, from, n))
		return error_set(b->err, -EBADMSG,
				 "a mapping without end is damaged");
	return hdf5_builder_tile(b, to, src, m, part, -1);
}

/* Elements of an unlimited mapping whose source has `n` along its axis: whole
 * blocks of both sides at once, what is left in pieces that fit both. */
static int tiles_of_length(struct builder *b, const struct hdf5_mapping *m,
			   uint32_t part, unsigned u, unsigned v, uint64_t n)
{
	uint64_t x = m->to[BLOCK * b->d->own_rank + u];
	uint64_t y = m->from[BLOCK * m->from_rank + v];
	uint64_t step, whole, at = 0;
	int r = 0;

	if (m->to[STRIDE * b->d->own_rank + u] <= x)
		x = HDF5_UNLIMITED;
	if (m->from[STRIDE * m->from_rank + v] <= y)
		y = HDF5_UNLIMITED;
	if (!x || !y)
		return error_set(b->err, -EBADMSG,
				 "a mapping without end is damaged");
	if (x == y || x == HDF5_UNLIMITED || y == HDF5_UNLIMITED)
		step = min_u64(x, y);
	else
		step = x % y == 0 ? x : y % x == 0 ? y : 0;
	if (!step)
		return error_set(b->err, -ENOTSUP,
				 "a mapping without end has blocks of %" PRIu64
				 " and %" PRIu64 " elements",
				 x, y);
	whole = step == HDF5_UNLIMITED ? n : n - n % step;
	if (whole)
		r = tile_part(b, m, part, u, v, 0, whole);
	for (at = whole; at < n && !r; at += step) {
		step = min_u64(min_u64(x - at % x, y - at % y), n - at);
		r = tile_part(b, m, part, u, v, at, step);
	}
	return r;
}

/* Describe a source. -ENODATA if it is missing; the first error is kept in
 * b->missing. */
static int describe_mapped_source(struct builder *b, uint32_t part,
				  struct hdf5_description *d, struct error *why)
{
	const struct part *p = &b->parts.at[part];
	struct hdf5_place at = {b->h->source, p->file, p->dataset};
	int r = hdf5_call_describe(&at, b->h->type, d, why);

	if (r < 0 && !b->missing)
		b->missing = strdup(why->text);
	return r;
}

/* Set *out to the length of an axis of a source; the axis may itself have no end. */
static int source_length(struct builder *b, uint32_t part, unsigned axis,
			 uint64_t *out)
{
	const struct part *p = &b->parts.at[part];
	struct hdf5_place at = {b->h->source, p->file, p->dataset};
	struct hdf5_tensor *inner;
	struct hdf5_description d;
	struct error why = {0};
	int r = describe_mapped_source(b, part, &d, &why);

	if (r < 0)
		return r;
	*out = d.shape[axis];
	if (axis >= d.own_rank) {
		r = error_set(b->err, -EBADMSG, "a mapping has too many axes");
	} else if (d.storage == HDF5_VIRTUAL) {
		inner = b->h->t.depth + 1 < TENSOR_DEPTH_MAX
				? hdf5_tensor_nested(b->h, &at, &d, &why)
				: NULL;
		r = inner ? 0 : -EIO;
		if (inner)
			*out = inner->t.shape[axis];
		tensor_free(inner ? &inner->t : NULL);
	}
	hdf5_description_free(&d);
	return r;
}

int hdf5_add_unlimited(struct builder *b, const struct hdf5_mapping *m,
		       unsigned u, unsigned v, uint32_t part)
{
	uint64_t length = 0, n, end = 0;
	int r = source_length(b, part, v, &length);

	b->open[u] = true;
	if (r == -ENOMEM || r == -EBADMSG)
		return r;
	if (r < 0) /* as long as the others are, and missing when read */
		return hdf5_builder_tile(b, m->to, m->from, m, part, (int)u);
	n = hdf5_slab_clip(m->from, m->from_rank, v, length);
	if (!hdf5_slab_end(m->to, b->d->own_rank, u, n, &end))
		return error_set(b->err, -EBADMSG,
				 "a mapping without end is damaged");
	if (n)
		hdf5_builder_reach(b, u, end);
	return tiles_of_length(b, m, part, u, v, n);
}

/* Add blocks 0, 1, 2, ... of a pattern up to the first missing one. */
int hdf5_add_pattern(struct builder *b, const struct hdf5_mapping *m,
		     unsigned u)
{
	unsigned rank = b->d->own_rank;
	int r = 0;

	b->open[u] = true;
	for (uint64_t k = 0; k < PATTERN_MAX && !r; k++) {
		cleanup_free char *file = hdf5_name_of_block(m->file, k);
		cleanup_free char *dataset = hdf5_name_of_block(m->dataset, k);
		uint64_t to[4 * RANK_MAX], end = 0, at;
		struct hdf5_description d;
		struct error why = {0};
		size_t before = b->parts.n;
		uint32_t part;

		if (!file || !dataset)
			return error_set(b->err, -EBADMSG,
					 "'%s' is not a pattern of file names",
					 m->file);
		r = hdf5_builder_part(b, file, dataset, &part);
		if (r < 0)
			return r;
		r = describe_mapped_source(b, part, &d, &why);
		if (r == -ENODATA) {
			hdf5_builder_drop(b, before);
			return 0;
		}
		if (r == 0)
			hdf5_description_free(&d);
		memcpy(to, m->to, 4 * rank * sizeof *to);
		*slab_at(to, rank, COUNT, u) = 1;
		if (mul_overflows(k, *slab_at(to, rank, STRIDE, u), &at) ||
		    add_overflows(at, *slab_at(to, rank, START, u),
				  slab_at(to, rank, START, u)) ||
		    !hdf5_slab_end(to, rank, u, *slab_at(to, rank, BLOCK, u),
				   &end))
			return error_set(b->err, -EBADMSG,
					 "a mapping without end is damaged");
		hdf5_builder_reach(b, u, end);
		r = hdf5_builder_tile(b, to, m->from, m, part, -1);
	}
	return r;
}
