/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings as text: values in C order, a line each, in segments of rows. */
/*
 * A text has the size its values have, so sizes cannot be computed, only
 * counted.  Rows are read in segments of at most 4096 values, about a MiB, that
 * never cross a part; a segment is a chunk that the cache keeps:
 *
 *     u32 samples | u32 offset[samples + 1] | lines
 *
 * Kept for good is only the size of each segment, 8 bytes; it is what places a
 * segment in array.txt.  A sample's lines are found in its segment by the
 * table, as a "slice" of the chunk.
 *
 * A backslash and a newline inside a value are written as \\ and \n, so that
 * one line is one value.
 */
#include "tensor/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "base/vec.h"
#include "tensor/lines.h"

#define SEGMENT_VALUES 4096
#define SEGMENT_UNKNOWN 512 /* values, when their size is not known */
#define SEGMENT_BYTES (UINT64_C(1) << 20)

/* Rows in a part, or in a gap between parts. */
struct piece {
	uint64_t row, rows;
	int64_t part; /* -1: a gap, empty strings */
	uint64_t first_segment;
};

struct text {
	struct chunk_set set;
	struct tensor *t;
	uint64_t row_samples;   /* samples in a row of the first axis */
	uint64_t sample_values; /* values in a sample */
	uint64_t segment_rows;
	uint64_t segments;
	vec(struct piece) pieces;
	_Atomic uint64_t *bytes;   /* of each segment's lines; UINT64_MAX: ? */
	_Atomic(uint64_t *) start; /* prefix sums of bytes, once all known */
};

static struct text *text_of(const struct chunk_set *s)
{
	return (struct text *)s;
}

/* ---- segments ------------------------------------------------------------ */

static const struct piece *piece_of(const struct text *x, uint64_t segment)
{
	size_t lo = 0, hi = x->pieces.n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->pieces.at[mid].first_segment <= segment)
			lo = mid;
		else
			hi = mid;
	}
	return &x->pieces.at[lo];
}

/* Rows of a segment: the first one, within its piece, and how many. */
static void segment_rows(const struct text *x, uint64_t segment,
			 const struct piece **piece, uint64_t *first,
			 uint64_t *n)
{
	const struct piece *p = piece_of(x, segment);

	*piece = p;
	*first = (segment - p->first_segment) * x->segment_rows;
	*n = min_u64(p->rows - *first, x->segment_rows);
}

static void segment_of_row(const struct text *x, uint64_t row,
			   uint64_t *segment, uint64_t *row_in_segment)
{
	size_t lo = 0, hi = x->pieces.n;
	const struct piece *p;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->pieces.at[mid].row <= row)
			lo = mid;
		else
			hi = mid;
	}
	p = &x->pieces.at[lo];
	row -= p->row;
	*segment = p->first_segment + row / x->segment_rows;
	*row_in_segment = row % x->segment_rows;
}

static size_t head_bytes(uint64_t samples)
{
	return ((size_t)samples + 2) * sizeof(uint32_t);
}

/* The segment's buffer out of its lines. */
static int lines_pack(struct text *x, uint64_t segment, struct lines *l,
		      _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	size_t head = head_bytes(l->samples);
	struct buf *b;

	if (l->values != l->samples * l->sample_values)
		return error_set(
			err, -EIO, "%s: %llu strings instead of %llu",
			x->t->name, (unsigned long long)l->values,
			(unsigned long long)(l->samples * l->sample_values));
	b = buf_new(head + l->used, gauge);
	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	*(uint32_t *)(void *)b->data = (uint32_t)l->samples;
	memcpy(b->data + sizeof(uint32_t), l->offset, head - sizeof(uint32_t));
	if (l->used)
		memcpy(b->data + head, l->text, l->used);
	atomic_store(&x->bytes[segment], l->used);
	*out = b;
	return 0;
}

/* missing=fill: rows of a part that is not there are empty strings. */
static bool fills_missing(struct text *x)
{
	if (x->t->missing != MISSING_FILL)
		return false;
	if (!atomic_exchange(&x->set.warned, true))
		log_warn("%s: strings of missing parts read as empty "
			 "(missing=fill)",
			 x->t->name);
	return true;
}

static int text_fetch(struct chunk_set *s, uint64_t segment,
		      _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	struct text *x = text_of(s);
	const struct piece *piece;
	uint64_t first, rows, row_values = x->row_samples * x->sample_values;
	struct lines l = {0};
	int r = 0;

	segment_rows(x, segment, &piece, &first, &rows);
	l.samples = rows * x->row_samples;
	l.sample_values = x->sample_values;
	l.offset = calloc(l.samples + 1, sizeof *l.offset);
	if (!l.offset)
		return error_set(err, -ENOMEM, "out of memory");
	if (piece->part >= 0)
		r = x->t->ops->strings(x->t, (uint32_t)piece->part,
				       first * row_values, rows * row_values,
				       lines_put, &l, err);
	if (piece->part < 0 || (r == -ENODATA && fills_missing(x))) {
		r = 0;
		for (uint64_t i = 0; i < rows * row_values; i++)
			lines_put(&l, "", 0);
	}
	if (!r && l.failed)
		r = error_set(err, -ENOMEM, "%s: strings do not fit in memory",
			      x->t->name);
	if (!r)
		r = lines_pack(x, segment, &l, gauge, out, err);
	free(l.offset);
	free(l.text);
	return r;
}

static int text_slice(const struct chunk_set *s, const struct buf *b,
		      uint32_t n, size_t *off, size_t *len)
{
	const uint32_t *head = (const void *)b->data;

	(void)s;
	if (n >= head[0])
		return -EIO;
	*off = head_bytes(head[0]) + head[1 + n];
	*len = head[2 + n] - head[1 + n];
	return 0;
}

static uint64_t text_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

static int text_locate(const struct chunk_set *s, uint64_t index,
		       const struct buf *segment, struct chunk *c,
		       struct error *err)
{
	(void)segment;
	memset(c, 0, sizeof *c);
	if (index >= text_of(s)->segments)
		return error_set(err, -EIO, "%s: no text segment %llu",
				 text_of(s)->t->name,
				 (unsigned long long)index);
	c->state = CHUNK_FETCH;
	c->size = s->unit;
	return 0;
}

static void text_describe(const struct chunk_set *s, uint64_t index, char *buf,
			  size_t n)
{
	snprintf(buf, n, "%s strings, segment %llu", text_of(s)->t->name,
		 (unsigned long long)index);
}

static const struct chunk_set_ops text_chunk_ops = {
	.segment_of = text_segment_of,
	.locate = text_locate,
	.fetch = text_fetch,
	.slice = text_slice,
	.describe = text_describe,
};

/* ---- making one ---------------------------------------------------------- */

static bool add_piece(struct text *x, uint64_t row, uint64_t rows, int64_t part)
{
	struct piece p = {row, rows, part, x->segments};

	if (!rows)
		return true;
	x->segments += div_up(rows, x->segment_rows);
	return vec_push(&x->pieces, p);
}

static uint64_t segment_values(const struct tensor *t)
{
	if (!t->text_bytes)
		return SEGMENT_UNKNOWN;
	return min_u64(SEGMENT_VALUES, SEGMENT_BYTES / t->text_bytes);
}

int text_new(struct text **out, struct tensor *t, unsigned axes,
	     struct error *err)
{
	struct text *x = calloc(1, sizeof *x);
	uint64_t rows = t->rank ? t->shape[0] : 1, row = 0, end;
	bool ok = true;

	if (!x)
		return error_set(err, -ENOMEM, "out of memory");
	x->set.ops = &text_chunk_ops;
	x->set.id = chunk_set_new_id();
	x->t = t;
	x->row_samples = x->sample_values = 1;
	for (unsigned i = 1; i < t->rank; i++)
		*(i < axes ? &x->row_samples : &x->sample_values) *=
			t->shape[i];
	x->segment_rows = segment_values(t) /
			  max_u64(1, x->row_samples * x->sample_values);
	x->segment_rows = max_u64(x->segment_rows, 1);
	x->set.unit = max_u64(64 << 10, x->segment_rows * x->row_samples *
						x->sample_values *
						max_u64(t->text_bytes, 16));
	while (ok && row < rows && t->elements) {
		int64_t p = tensor_part_at(t, row, &end);

		end = min_u64(end, rows);
		ok = add_piece(x, row, end - row, p);
		row = end;
	}
	x->bytes = ok ? malloc((x->segments + 1) * sizeof *x->bytes) : NULL;
	if (!x->bytes) {
		text_free(x);
		return error_set(err, -ENOMEM, "out of memory");
	}
	for (uint64_t i = 0; i < x->segments; i++)
		atomic_init(&x->bytes[i], UINT64_MAX);
	*out = x;
	return 0;
}

void text_free(struct text *x)
{
	if (!x)
		return;
	vec_free(&x->pieces);
	free(x->bytes);
	free(atomic_load(&x->start));
	free(x);
}

/* ---- sizes and extents --------------------------------------------------- */

static int pin_segment(struct text *x, uint64_t segment, struct pinner *p,
		       struct span *span, struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};

	e.u.chunk.set = &x->set;
	e.u.chunk.index = segment;
	e.u.chunk.slice = EXTENT_WHOLE;
	return p->pin(p, &e, span, err);
}

/* Samples of a whole segment, which is what its header's size depends on. */
static uint64_t segment_samples(const struct text *x, uint64_t segment)
{
	const struct piece *piece;
	uint64_t first, rows;

	segment_rows(x, segment, &piece, &first, &rows);
	return rows * x->row_samples;
}

int text_size(struct text *x, struct pinner *p, uint64_t *size,
	      struct error *err)
{
	uint64_t *start = atomic_load(&x->start), *none = NULL;
	struct span span;

	if (start) {
		*size = start[x->segments];
		return 0;
	}
	for (uint64_t i = 0; i < x->segments; i++) {
		int r;

		if (atomic_load(&x->bytes[i]) != UINT64_MAX)
			continue;
		r = pin_segment(x, i, p, &span, err);
		if (r < 0)
			return r;
		p->unpin(p, &span);
	}
	start = malloc((x->segments + 1) * sizeof *start);
	if (!start)
		return error_set(err, -ENOMEM, "out of memory");
	start[0] = 0;
	for (uint64_t i = 0; i < x->segments; i++)
		start[i + 1] = start[i] + atomic_load(&x->bytes[i]);
	*size = start[x->segments];
	if (!atomic_compare_exchange_strong(&x->start, &none, start))
		free(start);
	return 0;
}

/* Segment of a sample, and the sample's number in it. */
static void sample_place(const struct text *x, uint64_t sample,
			 uint64_t *segment, uint32_t *slice)
{
	uint64_t row_in_segment;

	segment_of_row(x, sample / x->row_samples, segment, &row_in_segment);
	*slice = (uint32_t)(row_in_segment * x->row_samples +
			    sample % x->row_samples);
}

int text_sample_size(struct text *x, uint64_t sample, struct pinner *p,
		     uint64_t *size, struct error *err)
{
	struct span span;
	uint64_t segment;
	uint32_t slice;
	size_t off, len;
	int r;

	sample_place(x, sample, &segment, &slice);
	r = pin_segment(x, segment, p, &span, err);
	if (r < 0)
		return r;
	r = text_slice(&x->set, span.buf, slice, &off, &len);
	p->unpin(p, &span);
	if (r < 0)
		return error_set(err, r, "%s: no line for sample %llu",
				 x->t->name, (unsigned long long)sample);
	*size = len;
	return 0;
}

int text_map(const struct text *x, uint64_t off, struct plan *plan,
	     struct error *err)
{
	const uint64_t *start = atomic_load(&x->start);
	uint64_t lo = 0, hi = x->segments;

	if (!start)
		return error_set(err, -EIO, "%s: text was not prepared",
				 x->t->name);
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (start[mid] <= off)
			lo = mid;
		else
			hi = mid;
	}
	for (; lo < x->segments && plan_open(plan); lo++) {
		uint64_t len = start[lo + 1] - off, took;

		if (!len)
			continue;
		took = plan_chunk(plan, (struct chunk_set *)&x->set, lo,
				  head_bytes(segment_samples(x, lo)) + off -
					  start[lo],
				  len);
		off += took;
		if (took < len)
			break;
	}
	return 0;
}

int text_map_sample(const struct text *x, uint64_t sample, uint64_t off,
		    struct plan *plan)
{
	uint64_t segment;
	uint32_t slice;

	sample_place(x, sample, &segment, &slice);
	plan_slice(plan, (struct chunk_set *)&x->set, segment, slice, off,
		   plan->want - plan->have);
	return 0;
}

/* Compare the line of one row with what was seen so far; true: go on. */
static bool common_row(struct text *x, const struct span *span, uint32_t slice,
		       char *buf, size_t n, bool first)
{
	size_t off, len;

	if (text_slice(&x->set, span->buf, slice, &off, &len) < 0 || !len)
		return true;
	len = min_u64(len - 1, n - 1);
	if (first) {
		memcpy(buf, span->buf->data + off, len);
		buf[len] = 0;
		return true;
	}
	if (strlen(buf) == len && !memcmp(buf, span->buf->data + off, len))
		return true;
	snprintf(buf, n, "mixed");
	return false;
}

int text_common(struct text *x, uint64_t first, uint64_t last, struct pinner *p,
		char *buf, size_t n, struct error *err)
{
	uint64_t row = first, segment, in_segment;

	buf[0] = 0;
	while (row < last) {
		const struct piece *piece;
		struct span span;
		uint64_t from, rows;
		bool same = true;
		int r;

		segment_of_row(x, row, &segment, &in_segment);
		segment_rows(x, segment, &piece, &from, &rows);
		r = pin_segment(x, segment, p, &span, err);
		if (r < 0)
			return r;
		for (; same && row < last && in_segment < rows; in_segment++) {
			same = common_row(x, &span, (uint32_t)in_segment, buf,
					  n, row == first);
			row++;
		}
		p->unpin(p, &span);
		if (!same)
			break;
	}
	return 0;
}
