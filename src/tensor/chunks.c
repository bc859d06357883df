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

static struct tensor *tensor_of(const struct chunk_set *s)
{
	return (struct tensor *)s;
}
static uint32_t part_of(uint64_t index)
{
	return (uint32_t)(index >> TENSOR_CHUNK_BITS);
}
static uint64_t chunk_of(uint64_t index)
{
	return index & (TENSOR_CHUNK_MAX - 1);
}
static const struct layout *layout_of(const struct chunk_set *s, uint64_t index)
{
	const struct tensor *t = tensor_of(s);

	return part_of(index) < t->nparts
		       ? atomic_load(&t->parts[part_of(index)].layout)
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

static int set_prepare(struct chunk_set *s, uint64_t index, struct error *err)
{
	const struct layout *l;

	return tensor_learn(tensor_of(s), part_of(index), &l, err);
}

static uint64_t set_segment_of(const struct chunk_set *s, uint64_t index)
{
	const struct layout *l = layout_of(s, index);

	if (!l || l->kind != LAYOUT_CHUNKED || l->by_library)
		return UINT64_MAX;
	return tensor_chunk_id(part_of(index),
			       chunk_of(index) / TENSOR_SEGMENT);
}

static int set_load_segment(struct chunk_set *s, uint64_t segment,
			    _Atomic uint64_t *gauge, struct buf **out,
			    struct error *err)
{
	struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, segment);
	uint64_t first = chunk_of(segment) * TENSOR_SEGMENT;
	uint32_t n = (uint32_t)min_u64(l->grid->count - first, TENSOR_SEGMENT);
	struct buf *b = buf_new(n * sizeof(struct location), gauge);
	int r;

	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	r = t->ops->locate(t, part_of(segment), l, first, n, (void *)b->data,
			   err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static int locate_chunked(const struct tensor *t, const struct layout *l,
			  uint64_t index, const struct buf *segment,
			  struct chunk *c, struct error *err)
{
	const struct location *at = (const void *)segment->data;
	uint64_t k = chunk_of(index), i = k % TENSOR_SEGMENT;

	if (i >= segment->size / sizeof *at)
		return error_set(err, -EIO, "%s: no chunk %llu", t->name,
				 (unsigned long long)k);
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

/* A piece of contiguous data. */
static void locate_linear(const struct layout *l, uint64_t index,
			  struct chunk *c)
{
	uint64_t piece = l->recode || l->nstretches ? layout_piece(l)
						    : l->grid->chunk_bytes;
	uint64_t begin = chunk_of(index) * piece;

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

static int set_locate(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *c,
		      struct error *err)
{
	const struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);

	memset(c, 0, sizeof *c);
	if (!l || chunk_of(index) >= layout_chunks(l))
		return error_set(err, -EIO, "%s: no chunk %llu in part %u",
				 t->name, (unsigned long long)chunk_of(index),
				 part_of(index));
	c->file = l->file;
	c->recode = l->recode;
	c->fill = l->fill;
	if (l->kind == LAYOUT_CHUNKED && !l->by_library) {
		int r = locate_chunked(t, l, index, segment, c, err);

		/* In several files that are one: it is read, not mapped. */
		if (!r && l->joined && c->state == CHUNK_STORED &&
		    !handles_in_one(t->handles, &c->file, &c->pos, c->stored))
			c->state = CHUNK_FETCH;
		return r;
	}
	if (l->kind == LAYOUT_LINEAR) {
		locate_linear(l, index, c);
		return 0;
	}
	c->state = CHUNK_FETCH;
	c->size = l->grid->chunk_bytes;
	c->useful = grid_chunk_useful(l->grid, chunk_of(index));
	return 0;
}

/* Stored bytes [from, from + n) of data that is spread over files. */
static int read_stretches(struct tensor *t, const struct layout *l,
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
	return n ? error_set(err, -EIO, "%s: its files end early", t->name) : 0;
}

/* Stored bytes first, then recode them. */
static int fetch_recoded(struct tensor *t, uint64_t index,
			 const struct layout *l, struct buf *b,
			 struct error *err)
{
	uint64_t n = b->size / l->recode->to, stored, from;
	cleanup_free void *raw = NULL;
	int r;

	if (mul_overflows(n, l->recode->from, &stored))
		return error_set(err, -EOVERFLOW, "%s: too large", t->name);
	raw = malloc(stored ? stored : 1);
	if (!raw)
		return error_set(err, -ENOMEM, "out of memory");
	from = chunk_of(index) * (layout_piece(l) / l->recode->to) *
	       l->recode->from;
	r = l->nstretches ? read_stretches(t, l, from, raw, stored, err)
			  : t->ops->fetch(t, part_of(index), l, chunk_of(index),
					  raw, stored, err);
	if (!r)
		recode_run(l->recode, raw, b->data, n);
	return r;
}

/* A chunk of which each file has some. */
static int fetch_spread(struct chunk_set *s, uint64_t index,
			_Atomic uint64_t *gauge, struct buf **out,
			struct error *err)
{
	struct tensor *t = tensor_of(s);
	struct buf *segment, *b;
	struct chunk c;
	int r = set_load_segment(s, set_segment_of(s, index), gauge, &segment,
				 err);

	if (r < 0)
		return r;
	r = set_locate(s, index, segment, &c, err);
	buf_unref(segment);
	if (r < 0)
		return r;
	c.state = CHUNK_STORED;
	b = buf_new(c.size, gauge);
	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	r = chunk_load(t->handles, &c, b->data, err);
	if (r < 0)
		buf_unref(b);
	else
		*out = b;
	return r;
}

static int set_fetch(struct chunk_set *s, uint64_t index,
		     _Atomic uint64_t *gauge, struct buf **out,
		     struct error *err)
{
	struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	struct chunk c;
	struct buf *b;
	int r;

	if (l && l->kind == LAYOUT_CHUNKED && !l->by_library)
		return fetch_spread(s, index, gauge, out, err);
	r = set_locate(s, index, NULL, &c, err);
	if (r < 0)
		return r;
	b = buf_new(c.size, gauge);
	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	if (l->recode && !l->by_library)
		r = fetch_recoded(t, index, l, b, err);
	else if (l->nstretches)
		r = read_stretches(t, l, chunk_of(index) * layout_piece(l),
				   b->data, b->size, err);
	else
		r = t->ops->fetch(t, part_of(index), l, chunk_of(index),
				  b->data, b->size, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static bool set_next(const struct chunk_set *s, uint64_t index, uint64_t *out,
		     unsigned *carry)
{
	const struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	uint32_t p = part_of(index);

	if (!l)
		return false;
	if (chunk_of(index) + 1 < layout_chunks(l)) {
		*out = index + 1;
		*carry = l->kind == LAYOUT_CHUNKED
				 ? grid_carry(l->grid, chunk_of(index))
				 : 0;
		return true;
	}
	if (p + 1 >= t->nparts)
		return false;
	*out = tensor_chunk_id(p + 1, 0);
	*carry = RANK_MAX;
	return true;
}

/* What its source makes: slow, and the more worth keeping. */
static bool set_origin(const struct chunk_set *s, uint64_t index,
		       const struct chunk *c, char *text, size_t n)
{
	const struct tensor *t = tensor_of(s);
	const struct layout *l = layout_of(s, index);
	const struct dtype *d = &t->dtype;
	const struct part *part;
	FILE *out;
	bool said;

	/* (A key has the identity of one file, and a joined row has several.) */
	if (!l || !l->by_library || l->joined || l->file == UINT32_MAX ||
	    !t->ops->origin || !dtype_is_binary(d) ||
	    (d->kind == DTYPE_STRUCT && !t->descr))
		return false;
	part = &t->parts[part_of(index)];
	text[n - 1] = '\0'; /* none is written where there is no room */
	out = fmemopen(text, n - 1, "w");
	if (!out)
		return false;
	fprintf(out, "%s: chunk %llu of", l->maker ? l->maker : "library",
		(unsigned long long)chunk_of(index));
	for (unsigned i = 0; i < l->grid->rank; i++)
		fprintf(out, " %llu/%llu",
			(unsigned long long)l->grid->chunk[i],
			(unsigned long long)l->grid->shape[i]);
	fprintf(out, ", %llu bytes, type %d %u %d %d %s of %zu %s in %zu %s: ",
		(unsigned long long)c->size, (int)d->kind, d->size,
		d->big_endian, d->padding,
		d->kind == DTYPE_STRUCT ? t->descr : "", strlen(t->name),
		t->name, strlen(part->dataset), part->dataset);
	said = t->ops->origin(t, part_of(index), out);
	/* What did not fit is an error of the stream. */
	return fclose(out) == 0 && said;
}

/* Of a larger grid it is not found out whether a chunk needs the filter. */
#define PLACES_MAX (UINT64_C(1) << 20)

/* Was any chunk stored with a filter that we lack?  True when that is not known. */
static bool needs_filter(struct tensor *t)
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
		is = needs_filter(t) ? 1 : 2;
		atomic_store(&t->undecoded, is);
	}
	return is == 1 ? t->unreadable : NULL;
}

static void set_describe(const struct chunk_set *s, uint64_t index, char *buf,
			 size_t n)
{
	const struct tensor *t = tensor_of(s);
	uint32_t p = part_of(index);

	if (t->mosaic && p < t->nparts)
		snprintf(buf, n, "%s: %s of %s, chunk %llu", t->name,
			 t->parts[p].dataset,
			 handles_name(t->handles, t->parts[p].file),
			 (unsigned long long)chunk_of(index));
	else
		snprintf(buf, n, "%s chunk %llu", t->name,
			 (unsigned long long)chunk_of(index));
}

const struct chunk_set_ops tensor_chunk_ops = {
	.prepare = set_prepare,
	.segment_of = set_segment_of,
	.load_segment = set_load_segment,
	.locate = set_locate,
	.fetch = set_fetch,
	.next = set_next,
	.origin = set_origin,
	.describe = set_describe,
};
