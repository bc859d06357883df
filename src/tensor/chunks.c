/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks of all parts of a tensor as one chunk set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "tensor/tensor.h"

static struct tensor *tensor_of_chunk_set(const struct chunk_set *s)
{
	return (struct tensor *)s;
}
static uint32_t chunk_index_part(uint64_t index)
{
	return (uint32_t)(index >> TENSOR_CHUNK_BITS);
}
static uint64_t chunk_index_in_part(uint64_t index)
{
	return index & (TENSOR_CHUNK_MAX - 1);
}
static const struct layout *chunk_index_layout(const struct chunk_set *s,
					       uint64_t index)
{
	const struct tensor *t = tensor_of_chunk_set(s);

	return chunk_index_part(index) < t->nparts
		       ? atomic_load(&t->parts[chunk_index_part(index)].layout)
		       : NULL;
}

uint64_t layout_piece(const struct layout *l)
{
	uint64_t unit = l->recode ? l->recode->to : 1;

	return max_u64(TENSOR_PIECE / unit, 1) * unit;
}

uint64_t layout_chunks(const struct layout *l)
{
	switch (l->kind) {
	case LAYOUT_CHUNKED:
		return l->grid->count;
	case LAYOUT_LINEAR:
		return l->recode || l->nstretches
			       ? div_up(l->grid->chunk_bytes, layout_piece(l))
			       : 1;
	case LAYOUT_FETCHED:
		return 1;
	case LAYOUT_ABSENT:
	case LAYOUT_NESTED:
		break;
	}
	return 0;
}

static int tensor_set_prepare(struct chunk_set *s, uint64_t index,
			      struct error *err)
{
	const struct layout *l;

	return tensor_learn(tensor_of_chunk_set(s), chunk_index_part(index), &l,
			    err);
}

static uint64_t tensor_set_segment_of(const struct chunk_set *s, uint64_t index)
{
	const struct layout *l = chunk_index_layout(s, index);

	if (!l || l->kind != LAYOUT_CHUNKED || l->by_library)
		return UINT64_MAX;
	return tensor_chunk_id(chunk_index_part(index),
			       chunk_index_in_part(index) / TENSOR_SEGMENT);
}

static int tensor_set_load_segment(struct chunk_set *s, uint64_t segment,
				   _Atomic uint64_t *gauge, struct buf **out,
				   struct error *err)
{
	struct tensor *t = tensor_of_chunk_set(s);
	const struct layout *l = chunk_index_layout(s, segment);
	uint64_t first = chunk_index_in_part(segment) * TENSOR_SEGMENT;
	uint32_t n = (uint32_t)min_u64(l->grid->count - first, TENSOR_SEGMENT);
	struct buf *b = buf_new(n * sizeof(struct location), gauge);
	int r;

	if (!b)
		return error_no_memory(err, "the positions of chunks");
	r = t->ops->locate(t, chunk_index_part(segment), l, first, n,
			   (void *)b->data, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static int tensor_locate_chunked(const struct tensor *t, const struct layout *l,
				 uint64_t index, const struct buf *segment,
				 struct chunk *c, struct error *err)
{
	const struct location *at = (const void *)segment->data;
	uint64_t k = chunk_index_in_part(index), i = k % TENSOR_SEGMENT;

	if (i >= segment->size / sizeof *at)
		return error_set(err, -EIO, "%s: there is no chunk %llu",
				 t->name, (unsigned long long)k);
	at += i;
	c->pipeline = l->pipeline->n ? l->pipeline : NULL;
	c->size = l->grid->chunk_bytes;
	if (at->pos == UINT64_MAX) {
		c->state = CHUNK_ABSENT;
		return 0;
	}
	c->useful = grid_chunk_useful(l->grid, k);
	c->pos = at->pos;
	c->stored = at->stored;
	c->skip_mask = (uint32_t)at->mask;
	if (l->raw_edges && grid_is_partial(l->grid, k))
		c->skip_mask = UINT32_MAX;
	return 0;
}

/* Describe a chunk of contiguous data: all of it, or one piece. */
static void tensor_locate_linear(const struct layout *l, uint64_t index,
				 struct chunk *c)
{
	uint64_t piece = l->recode || l->nstretches ? layout_piece(l)
						    : l->grid->chunk_bytes;
	uint64_t begin = chunk_index_in_part(index) * piece;

	c->size = min_u64(l->grid->chunk_bytes - begin, piece);
	c->stored = c->size;
	c->pos = l->pos + begin;
	if (l->recode) {
		c->stored = c->size / l->recode->to * l->recode->from;
		c->pos = l->pos + begin / l->recode->to * l->recode->from;
	}
	if (l->nstretches)
		c->state = CHUNK_FETCH;
}

static int tensor_set_locate(const struct chunk_set *s, uint64_t index,
			     const struct buf *segment, struct chunk *c,
			     struct error *err)
{
	const struct tensor *t = tensor_of_chunk_set(s);
	const struct layout *l = chunk_index_layout(s, index);

	memset(c, 0, sizeof *c);
	if (!l || chunk_index_in_part(index) >= layout_chunks(l))
		return error_set(
			err, -EIO, "%s: there is no chunk %llu in part %u",
			t->name, (unsigned long long)chunk_index_in_part(index),
			chunk_index_part(index));
	c->file = l->file;
	c->recode = l->recode;
	c->fill = l->fill;
	if (l->kind == LAYOUT_CHUNKED && !l->by_library) {
		int r = tensor_locate_chunked(t, l, index, segment, c, err);

		/* A chunk that crosses from one of several joined files to the next is
		 * read, not mapped. */
		if (!r && l->joined && c->state == CHUNK_STORED &&
		    !handles_in_one(t->handles, &c->file, &c->pos, c->stored))
			c->state = CHUNK_FETCH;
		return r;
	}
	if (l->kind == LAYOUT_LINEAR) {
		tensor_locate_linear(l, index, c);
		return 0;
	}
	c->state = CHUNK_FETCH;
	c->size = l->grid->chunk_bytes;
	c->useful = grid_chunk_useful(l->grid, chunk_index_in_part(index));
	return 0;
}

/* Read stored bytes [from, from + n) of contiguous data that is spread over files. */
static int tensor_read_stretches(struct tensor *t, const struct layout *l,
				 uint64_t from, unsigned char *out, uint64_t n,
				 struct error *err)
{
	for (uint32_t i = 0; i < l->nstretches && n; i++) {
		const struct stretch *s = &l->stretches[i];
		uint64_t take;
		int r;

		if (from >= s->begin + s->len)
			continue;
		take = min_u64(s->begin + s->len - from, n);
		r = handles_read(t->handles, s->file,
				 s->pos + (from - s->begin), out, (size_t)take,
				 err);
		if (r < 0)
			return r;
		from += take;
		out += take;
		n -= take;
	}
	return n ? error_set(err, -EIO,
			     "%s: the files that hold its data are too short",
			     t->name)
		 : 0;
}

/* Read the stored bytes of a chunk, then recode them into `b`. */
static int tensor_fetch_recoded(struct tensor *t, uint64_t index,
				const struct layout *l, struct buf *b,
				struct error *err)
{
	uint64_t n = b->size / l->recode->to, stored, from;
	cleanup_free void *raw = NULL;
	int r;

	if (mul_overflows(n, l->recode->from, &stored))
		return error_set(err, -EOVERFLOW,
				 "%s: a chunk is too large to be read",
				 t->name);
	raw = malloc(stored ? stored : 1);
	if (!raw)
		return error_no_memory(err, "a chunk as it is stored");
	from = chunk_index_in_part(index) * (layout_piece(l) / l->recode->to) *
	       l->recode->from;
	r = l->nstretches ? tensor_read_stretches(t, l, from, raw, stored, err)
			  : t->ops->fetch(t, chunk_index_part(index), l,
					  chunk_index_in_part(index), raw,
					  stored, err);
	if (!r)
		recode_run(l->recode, raw, b->data, n);
	return r;
}

/* Load a chunk whose stored bytes are spread over several joined files. */
static int tensor_fetch_spread(struct chunk_set *s, uint64_t index,
			       _Atomic uint64_t *gauge, struct buf **out,
			       struct error *err)
{
	struct tensor *t = tensor_of_chunk_set(s);
	struct buf *segment, *b;
	struct chunk c;
	int r = tensor_set_load_segment(s, tensor_set_segment_of(s, index),
					gauge, &segment, err);

	if (r < 0)
		return r;
	r = tensor_set_locate(s, index, segment, &c, err);
	buf_unref(segment);
	if (r < 0)
		return r;
	c.state = CHUNK_STORED;
	b = buf_new(c.size, gauge);
	if (!b)
		return error_no_memory(err, "a decoded chunk");
	r = chunk_load(t->handles, &c, b->data, err);
	if (r < 0)
		buf_unref(b);
	else
		*out = b;
	return r;
}

static int tensor_set_fetch(struct chunk_set *s, uint64_t index,
			    _Atomic uint64_t *gauge, struct buf **out,
			    struct error *err)
{
	struct tensor *t = tensor_of_chunk_set(s);
	const struct layout *l = chunk_index_layout(s, index);
	struct chunk c;
	struct buf *b;
	int r;

	if (l && l->kind == LAYOUT_CHUNKED && !l->by_library)
		return tensor_fetch_spread(s, index, gauge, out, err);
	r = tensor_set_locate(s, index, NULL, &c, err);
	if (r < 0)
		return r;
	b = buf_new(c.size, gauge);
	if (!b)
		return error_no_memory(err, "a decoded chunk");
	if (l->recode && !l->by_library)
		r = tensor_fetch_recoded(t, index, l, b, err);
	else if (l->nstretches)
		r = tensor_read_stretches(
			t, l, chunk_index_in_part(index) * layout_piece(l),
			b->data, b->size, err);
	else
		r = t->ops->fetch(t, chunk_index_part(index), l,
				  chunk_index_in_part(index), b->data, b->size,
				  err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static bool tensor_set_next(const struct chunk_set *s, uint64_t index,
			    uint64_t *out, unsigned *carry)
{
	const struct tensor *t = tensor_of_chunk_set(s);
	const struct layout *l = chunk_index_layout(s, index);
	uint32_t p = chunk_index_part(index);

	if (!l)
		return false;
	if (chunk_index_in_part(index) + 1 < layout_chunks(l)) {
		*out = index + 1;
		*carry = l->kind == LAYOUT_CHUNKED
				 ? grid_carry(l->grid,
					      chunk_index_in_part(index))
				 : 0;
		return true;
	}
	if (p + 1 >= t->nparts)
		return false;
	*out = tensor_chunk_id(p + 1, 0);
	*carry = RANK_MAX;
	return true;
}

/* Write what decides the bytes of a chunk that the source makes.  Such chunks are slow
 * to make, so they are worth keeping between mounts. */
static bool tensor_set_origin(const struct chunk_set *s, uint64_t index,
			      const struct chunk *c, char *text, size_t n)
{
	const struct tensor *t = tensor_of_chunk_set(s);
	const struct layout *l = chunk_index_layout(s, index);
	const struct dtype *d = &t->dtype;
	const struct part *part;
	FILE *out;
	bool said;

	/* A key identifies one file, so joined files cannot have one. */
	if (!l || !l->by_library || l->joined || l->file == UINT32_MAX ||
	    !t->ops->origin || !dtype_is_binary(d) ||
	    (d->kind == DTYPE_STRUCT && !t->descr))
		return false;
	part = &t->parts[chunk_index_part(index)];
	/* fmemopen writes no NUL when the text fills its buffer */
	text[n - 1] = '\0';
	out = fmemopen(text, n - 1, "w");
	if (!out)
		return false;
	fprintf(out, "%s: chunk %llu of", l->maker ? l->maker : "library",
		(unsigned long long)chunk_index_in_part(index));
	for (unsigned i = 0; i < l->grid->rank; i++)
		fprintf(out, " %llu/%llu",
			(unsigned long long)l->grid->chunk[i],
			(unsigned long long)l->grid->shape[i]);
	fprintf(out, ", %llu bytes, type %d %u %d %d %s of %zu %s in %zu %s: ",
		(unsigned long long)c->size, (int)d->kind, d->size,
		d->big_endian, d->padding,
		d->kind == DTYPE_STRUCT ? t->descr : "", strlen(t->name),
		t->name, strlen(part->dataset), part->dataset);
	said = t->ops->origin(t, chunk_index_part(index), out);
	/* fclose fails if the text did not fit. */
	return fclose(out) == 0 && said;
}

/* Grids of more chunks than this are not searched for chunks that need the filter. */
#define PLACES_MAX (UINT64_C(1) << 20)

/* Was any chunk stored with a filter that is missing here?  Return true when that
 * cannot be found out. */
static bool tensor_needs_filter(struct tensor *t)
{
	const struct layout *l =
		t->nparts ? atomic_load(&t->parts[0].layout) : NULL;
	cleanup_free struct location *at = NULL;

	if (!l || l->kind != LAYOUT_CHUNKED || l->grid->count > PLACES_MAX ||
	    !t->ops->locate)
		return true;
	at = malloc(TENSOR_SEGMENT * sizeof *at);
	for (uint64_t k = 0; at && k < l->grid->count; k += TENSOR_SEGMENT) {
		uint32_t n =
			(uint32_t)min_u64(l->grid->count - k, TENSOR_SEGMENT);

		if (t->ops->locate(t, 0, l, k, n, at, NULL) < 0)
			return true;
		for (uint32_t i = 0; i < n; i++)
			if (at[i].pos != UINT64_MAX &&
			    pipeline_missing(l->pipeline, at[i].mask))
				return true;
	}
	return !at;
}

const char *tensor_undecoded(struct tensor *t)
{
	int is;

	if (!t->unreadable)
		return NULL;
	is = atomic_load(&t->undecoded);
	if (!is) {
		is = tensor_needs_filter(t) ? 1 : 2;
		atomic_store(&t->undecoded, is);
	}
	return is == 1 ? t->unreadable : NULL;
}

static void tensor_set_describe(const struct chunk_set *s, uint64_t index,
				char *buf, size_t n)
{
	const struct tensor *t = tensor_of_chunk_set(s);
	uint32_t p = chunk_index_part(index);

	if (t->mosaic && p < t->nparts)
		snprintf(buf, n, "%s: %s of %s, chunk %llu", t->name,
			 t->parts[p].dataset,
			 handles_name(t->handles, t->parts[p].file),
			 (unsigned long long)chunk_index_in_part(index));
	else
		snprintf(buf, n, "%s chunk %llu", t->name,
			 (unsigned long long)chunk_index_in_part(index));
}

const struct chunk_set_ops tensor_chunk_ops = {
	.prepare = tensor_set_prepare,
	.index_page_of = tensor_set_segment_of,
	.load_index_page = tensor_set_load_segment,
	.locate = tensor_set_locate,
	.fetch = tensor_set_fetch,
	.next = tensor_set_next,
	.origin = tensor_set_origin,
	.describe = tensor_set_describe,
};
